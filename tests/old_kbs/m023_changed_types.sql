-- As the version whose index of facts has their data types wrote it: the file before, brought up to date.
BEGIN TRANSACTION;
CREATE TABLE "_instances_1" (id INTEGER PRIMARY KEY, v1 INTEGER, v2 INTEGER, v3 INTEGER, p1 INTEGER, p2 INTEGER);
INSERT INTO "_instances_1" VALUES(1,2,4,14,1,4);
INSERT INTO "_instances_1" VALUES(2,6,8,16,2,5);
INSERT INTO "_instances_1" VALUES(3,10,12,18,3,6);
CREATE TABLE "_relation_1" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
INSERT INTO "_relation_1" VALUES(2,4,1);
INSERT INTO "_relation_1" VALUES(6,8,2);
INSERT INTO "_relation_1" VALUES(10,12,3);
CREATE TABLE "_relation_2" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
INSERT INTO "_relation_2" VALUES(4,14,4);
INSERT INTO "_relation_2" VALUES(8,16,5);
INSERT INTO "_relation_2" VALUES(12,18,6);
CREATE TABLE "_relation_3" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
INSERT INTO "_relation_3" VALUES(20,6,7);
CREATE TABLE "_relation_4" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
INSERT INTO "_relation_4" VALUES(20,3631,8);
CREATE TABLE "_relation_5" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
INSERT INTO "_relation_5" VALUES(22,24,9);
CREATE TABLE "_relation_6" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
INSERT INTO "_relation_6" VALUES(20,26,10);
CREATE TABLE "_relation_7" (a1 INTEGER NOT NULL, a2 INTEGER NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (a1, a2)) WITHOUT ROWID;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
) STRICT;
INSERT INTO "_sqlite_migrations" VALUES(1,'hapax','m001_initial','2026-11-21 11:15:13.381982+00:00');
INSERT INTO "_sqlite_migrations" VALUES(2,'hapax','m002_inference','2026-11-21 13:32:45.111225+00:00');
INSERT INTO "_sqlite_migrations" VALUES(3,'hapax','m003_profiles','2026-11-22 18:21:23.848663+00:00');
INSERT INTO "_sqlite_migrations" VALUES(4,'hapax','m006_conflicts','2026-11-22 21:04:12.116845+00:00');
INSERT INTO "_sqlite_migrations" VALUES(5,'hapax','m004_rule_texts','2026-11-23 01:32:28.050746+00:00');
INSERT INTO "_sqlite_migrations" VALUES(6,'hapax','m005_sources','2026-11-23 01:32:28.055824+00:00');
INSERT INTO "_sqlite_migrations" VALUES(7,'hapax','m012_argument_index','2026-11-23 01:32:28.056281+00:00');
INSERT INTO "_sqlite_migrations" VALUES(8,'hapax','m007_attempts','2026-11-24 00:31:27.552093+00:00');
INSERT INTO "_sqlite_migrations" VALUES(9,'hapax','m008_calibration','2026-11-24 00:31:27.553114+00:00');
INSERT INTO "_sqlite_migrations" VALUES(10,'hapax','m009_withdrawals','2026-11-24 00:31:27.554065+00:00');
INSERT INTO "_sqlite_migrations" VALUES(11,'hapax','m010_certificate_order','2026-11-24 00:31:27.554742+00:00');
INSERT INTO "_sqlite_migrations" VALUES(12,'hapax','m011_maintenance','2026-11-24 00:31:27.570895+00:00');
INSERT INTO "_sqlite_migrations" VALUES(13,'hapax','m017_revisable_statements','2026-11-24 00:31:27.571275+00:00');
INSERT INTO "_sqlite_migrations" VALUES(14,'hapax','m018_judging_draws','2026-11-24 07:26:45.780335+00:00');
INSERT INTO "_sqlite_migrations" VALUES(15,'hapax','m019_derived_words','2026-11-24 12:14:12.687571+00:00');
INSERT INTO "_sqlite_migrations" VALUES(16,'hapax','m020_statement_orders','2026-11-24 18:32:51.791752+00:00');
INSERT INTO "_sqlite_migrations" VALUES(17,'hapax','m021_derived_ids','2026-11-24 19:08:22.822338+00:00');
INSERT INTO "_sqlite_migrations" VALUES(18,'hapax','m022_popularity','2026-11-25 23:04:41.519142+00:00');
INSERT INTO "_sqlite_migrations" VALUES(19,'hapax','m023_changed_types','2026-11-25 23:18:24.662732+00:00');
CREATE TABLE argument_index (number INTEGER NOT NULL, place INTEGER NOT NULL, key NOT NULL, ref INTEGER NOT NULL, PRIMARY KEY (number, place, key, ref)) WITHOUT ROWID;
CREATE TABLE "assessments" (
   "id" TEXT PRIMARY KEY,
   "text" TEXT NOT NULL,
   "measure" TEXT NOT NULL,
   "model" TEXT NOT NULL,
   "score" REAL NOT NULL,
   "token_count" INTEGER NOT NULL,
   "call_id" TEXT REFERENCES "calls"("request_id")
, basis TEXT) STRICT;
INSERT INTO "assessments" VALUES('02e89bb6b65a69f7ec6e7b1719f83867','Oslo is a city.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('426308c46534a5fe65067dbcbeb8786c','Lyon is a city.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('a332b1199f9d57c97d980a9ffae79416','Banjul is a city.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('01a33592fdfa5334eef4458ec7cf63f8','PersonX lives in Oslo.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,3,NULL,NULL);
INSERT INTO "assessments" VALUES('397abcbf232a690b5ea6778ea41ff4dd','PersonX lives in Lyon.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,3,NULL,NULL);
INSERT INTO "assessments" VALUES('8be5d58e5696e2b4152cd6476e671326','PersonX lives in Banjul.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,3,NULL,NULL);
INSERT INTO "assessments" VALUES('c962032087ec6d97cf8629983295dc9e','Norway is a country.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('c1839127d8d419fc8d5f177e0ab755a8','France is a country.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('82f49eeb94c52feac3fb66733e5da4ee','The Gambia is a country.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('9413f027a553cf1698023779841fa5ef','Oslo is a city in Norway.','probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('7cc57721a02dfd019fbf64a0e70fd953','Lyon is a city in France.','probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('3cc9eb17a9f68c2446902a54297d1c53','Banjul is a city in The Gambia.','probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('719b562361c7d3eabc235f422ac1c01a','PersonX lives in Oslo and Oslo is a city in Norway.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,10,NULL,NULL);
INSERT INTO "assessments" VALUES('1e7fe684e6aac922ca0b10a260c8242f','PersonX lives in Lyon and Lyon is a city in France.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,10,NULL,NULL);
INSERT INTO "assessments" VALUES('6f68db85ccb42180657eca1c4c0d724a','PersonX lives in Banjul and Banjul is a city in The Gambia.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,11,NULL,NULL);
INSERT INTO "assessments" VALUES('0093172672f876522c06d572dfd5d20d','Norwegian krone is a currency.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('c9f336ef1c3b7c83be30121b692e5196','Euro is a currency.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('718dfe3fea0b04b369c18013b69906ae','Dalasi is a currency.','type_probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('0e96c54653e815e9e5a0c717ffcd26ff','Norway uses the Norwegian krone.','probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('781d32a80481279f7dde11f2e3be0145','Norway uses the euro.','probability','scripted/script.json@de4b7682180f7181',0.1,0,NULL,NULL);
INSERT INTO "assessments" VALUES('c2d533275440f0654be87d31455ea6c9','France uses the euro.','probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('6b75f5e28f6e4bc40c0b2dfb41d5eef5','The Gambia uses the dalasi.','probability','scripted/script.json@de4b7682180f7181',0.95,0,NULL,NULL);
INSERT INTO "assessments" VALUES('f6de0043da4b8d6ecb6d11e367f1d3ad','PersonX lives in Oslo and Oslo is a city in Norway and Norway uses the Norwegian krone and PersonX can pay with the Norwegian krone.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,24,NULL,NULL);
INSERT INTO "assessments" VALUES('8d4e6691b37076630924c3a73bcfeb62','PersonX lives in Lyon and Lyon is a city in France and France uses the euro and PersonX can pay with the euro.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,22,NULL,NULL);
INSERT INTO "assessments" VALUES('9ae498b32aa085b9aa4bc1c1b3b390e4','PersonX lives in Banjul and Banjul is a city in The Gambia and The Gambia uses the dalasi and PersonX can pay with the dalasi.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,24,NULL,NULL);
INSERT INTO "assessments" VALUES('22631829fc74a9c866eb340fc5030acc','If PersonX lives in Oslo, then PersonX can pay with the Norwegian krone.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,12,NULL,NULL);
INSERT INTO "assessments" VALUES('37125a88b13a7808f4058e94dc01b3f5','If PersonX lives in Lyon, then PersonX can pay with the euro.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,11,NULL,NULL);
INSERT INTO "assessments" VALUES('2bbd68fe186bc4edca5b57ca136a66e9','If PersonX lives in Banjul, then PersonX can pay with the dalasi.','log_likelihood','scripted/script.json@de4b7682180f7181',-10.0,11,NULL,NULL);
CREATE TABLE "attempts" (
   "id" TEXT PRIMARY KEY,
   "role" TEXT NOT NULL,
   "model" TEXT NOT NULL,
   "path" TEXT NOT NULL,
   "started" TEXT NOT NULL,
   "finished" TEXT,
   "outcome" TEXT,
   "prompt_tokens" INTEGER NOT NULL,
   "completion_tokens" INTEGER NOT NULL,
   "cost" REAL
) STRICT;
CREATE TABLE "calibrations" (
   "critic" TEXT PRIMARY KEY,
   "method" TEXT NOT NULL,
   "parameters" TEXT NOT NULL,
   "sample" TEXT NOT NULL,
   "sources" TEXT NOT NULL,
   "metrics" TEXT NOT NULL,
   "created" TEXT NOT NULL,
   "checksum" TEXT NOT NULL
) STRICT;
CREATE TABLE "calls" (
   "request_id" TEXT PRIMARY KEY,
   "role" TEXT NOT NULL,
   "model" TEXT NOT NULL,
   "request" TEXT NOT NULL,
   "response" TEXT NOT NULL,
   "prompt_tokens" INTEGER NOT NULL,
   "completion_tokens" INTEGER NOT NULL,
   "cost" REAL,
   "created" TEXT NOT NULL
) STRICT;
INSERT INTO "calls" VALUES('db2ed890719a4ec19cac56c342a024a0','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of A to fill in the sentence ''[A] is a city in [B]'' in the format ''1. value.'', where A is a city.","sample_index":0}','{"finish_reason":"stop","text":"1. Oslo.\n2. Lyon.\n3. Banjul."}',27,6,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('33c58014c012d720d904c2cc03d52bfb','critic','scripted/script.json@de4b7682180f7181','{"claim":"Oslo is a city."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('b799d23d4a3d59c1c180b68c03703d26','critic','scripted/script.json@de4b7682180f7181','{"claim":"Lyon is a city."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('0608029f833fbaa03d982988e51a6fa7','critic','scripted/script.json@de4b7682180f7181','{"claim":"Banjul is a city."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('56f531fd52e478069f7c0a1148fbe666','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["Oslo","Lyon","Banjul"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of A to fill in the sentence ''[A] is a city in [B]'' in the format ''1. value.'', where A is a city.","sample_index":0}','{"finish_reason":"stop","text":""}',27,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('f4473d07667e9b029d8d58b6e01bbf99','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["Oslo","Lyon","Banjul"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of A to fill in the sentence ''[A] is a city in [B]'' in the format ''1. value.'', where A is a city.","sample_index":1}','{"finish_reason":"stop","text":""}',27,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('bee0a47d69cae45758694c98a43f4d1c','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Oslo."}','{"token_count":3,"total":-10.0}',3,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('c4774c1409786fbbac602bbb6d059e2f','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Lyon."}','{"token_count":3,"total":-10.0}',3,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('58daf878b7785550e9b5740c44a29654','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Banjul."}','{"token_count":3,"total":-10.0}',3,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('b34b9be133a391a2f47a66c3b3f405db','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me the correct value of B to fill in the sentence ''Oslo is a city in [B]'' in the format ''1. value.'', where B is a country.","sample_index":0}','{"finish_reason":"stop","text":"1. Norway."}',28,2,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('5c1acd3defd1933decefff7cf27fa021','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me the correct value of B to fill in the sentence ''Oslo is a city in [B]'' in the format ''1. value.'', where B is a country.","sample_index":1}','{"finish_reason":"stop","text":"1. Norway."}',28,2,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('d9b461b11e661ccc555be8b55e1ba5b3','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me the correct value of B to fill in the sentence ''Lyon is a city in [B]'' in the format ''1. value.'', where B is a country.","sample_index":0}','{"finish_reason":"stop","text":"1. France."}',28,2,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('960aabe2434632fb346149387a6c2751','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me the correct value of B to fill in the sentence ''Lyon is a city in [B]'' in the format ''1. value.'', where B is a country.","sample_index":1}','{"finish_reason":"stop","text":"1. France."}',28,2,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('9e50d740a9ad9c885096aab5e14aa34b','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me the correct value of B to fill in the sentence ''Banjul is a city in [B]'' in the format ''1. value.'', where B is a country.","sample_index":0}','{"finish_reason":"stop","text":"1. The Gambia."}',28,3,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('c18dc90dfa21b4f6a66a601dec4e565a','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me the correct value of B to fill in the sentence ''Banjul is a city in [B]'' in the format ''1. value.'', where B is a country.","sample_index":1}','{"finish_reason":"stop","text":"1. The Gambia."}',28,3,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('6e38e5924beaef05e1cfa9c09e13c14f','critic','scripted/script.json@de4b7682180f7181','{"claim":"Norway is a country."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('a6288837c573637c1250a40924424aa2','critic','scripted/script.json@de4b7682180f7181','{"claim":"France is a country."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('2ec37f4906e96316f061e9dda781fc7b','critic','scripted/script.json@de4b7682180f7181','{"claim":"The Gambia is a country."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('00b7dc4bdaae8f38adf6c0a95c83ad64','critic','scripted/script.json@de4b7682180f7181','{"claim":"Oslo is a city in Norway."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('8c7c9fc644f9523fce70b9f2a0f0d3fd','critic','scripted/script.json@de4b7682180f7181','{"claim":"Lyon is a city in France."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('6e84a35691107745298df84744e0e108','critic','scripted/script.json@de4b7682180f7181','{"claim":"Banjul is a city in The Gambia."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('928b571a6743ec03d49d5f295d992d51','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Oslo and Oslo is a city in Norway."}','{"token_count":10,"total":-10.0}',10,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('8ea325fdb931731105501f4f0d3973a2','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Lyon and Lyon is a city in France."}','{"token_count":10,"total":-10.0}',10,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('5a7ad10a4e1ae1410c52b792c2f7cefa','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Banjul and Banjul is a city in The Gambia."}','{"token_count":11,"total":-10.0}',11,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('19fc8cb7c48b4f120aa7ef04305970b0','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''Norway uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":0}','{"finish_reason":"stop","text":"1. Norwegian krone.\n2. euro."}',25,5,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('896b2231cdf46b088a9d700f7ec7c504','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''France uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":0}','{"finish_reason":"stop","text":"1. euro."}',25,2,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('ed5629d7030f84a8d37b239fb06447ec','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":[],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''The Gambia uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":0}','{"finish_reason":"stop","text":"1. dalasi."}',26,2,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('4e9eaef0b9bffa84ed2cc2564e6dc2ac','critic','scripted/script.json@de4b7682180f7181','{"claim":"Norwegian krone is a currency."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('9f2983c7bc03e19b34ea469ded31f57c','critic','scripted/script.json@de4b7682180f7181','{"claim":"Euro is a currency."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('ebef69051f656bee974f2c73fe513d6f','critic','scripted/script.json@de4b7682180f7181','{"claim":"Dalasi is a currency."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('9bc600cd81813104de7bc9510a1f682a','critic','scripted/script.json@de4b7682180f7181','{"claim":"Norway uses the Norwegian krone."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('e2b5a4d71e590d593b21699e13f90d6a','critic','scripted/script.json@de4b7682180f7181','{"claim":"Norway uses the euro."}','{"probability":0.1}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('69e9fabbe5a1e1f0f4b80d1aa2f1ed8e','critic','scripted/script.json@de4b7682180f7181','{"claim":"France uses the euro."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('97d0fa1ce0c47a1fb41b88045da2343c','critic','scripted/script.json@de4b7682180f7181','{"claim":"The Gambia uses the dalasi."}','{"probability":0.95}',0,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('e939e4ba2c1394a1790ffbe2520cc933','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["Norwegian krone","euro"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''Norway uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":0}','{"finish_reason":"stop","text":""}',25,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('62beefd89148f9b43123ceb2a7459ee8','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["euro"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''France uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":0}','{"finish_reason":"stop","text":""}',25,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('c2f3f1072df8fa9c991b6f9a06846060','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["dalasi"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''The Gambia uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":0}','{"finish_reason":"stop","text":""}',26,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('f5cdab07c5b0a236c2a4bf60d3920f38','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["Norwegian krone","euro"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''Norway uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":1}','{"finish_reason":"stop","text":""}',25,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('17b018eadae3fe283491959f5cb74186','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["euro"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''France uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":1}','{"finish_reason":"stop","text":""}',25,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('5e5464eecc8e389c24cac470b178b6e5','knowledge','scripted/script.json@de4b7682180f7181','{"banned_tokens_of":[],"excluded_values":["dalasi"],"parameters":{"max_tokens":1000,"seed":0,"temperature":0.7,"top_p":1.0},"prompt":"Give me 50 values of B to fill in the sentence ''The Gambia uses the [B]'' in the format ''1. value.'', where B is a currency.","sample_index":1}','{"finish_reason":"stop","text":""}',26,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('f2a07bcb183b5880a60742350b7482fd','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Oslo and Oslo is a city in Norway and Norway uses the Norwegian krone and PersonX can pay with the Norwegian krone."}','{"token_count":24,"total":-10.0}',24,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('cc08a16d7abefc29aaca370df4e94112','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Lyon and Lyon is a city in France and France uses the euro and PersonX can pay with the euro."}','{"token_count":22,"total":-10.0}',22,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('bec280c6eb469ea59553d177cd250511','likelihood','scripted/script.json@de4b7682180f7181','{"text":"PersonX lives in Banjul and Banjul is a city in The Gambia and The Gambia uses the dalasi and PersonX can pay with the dalasi."}','{"token_count":24,"total":-10.0}',24,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('b7836ae691117292175ae028120996b5','evaluator','scripted/script.json@de4b7682180f7181','{"text":"If PersonX lives in Oslo, then PersonX can pay with the Norwegian krone."}','{"token_count":12,"total":-10.0}',12,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('143799dc4c82a9cffda4a535763b3730','evaluator','scripted/script.json@de4b7682180f7181','{"text":"If PersonX lives in Lyon, then PersonX can pay with the euro."}','{"token_count":11,"total":-10.0}',11,0,0.0,'2026-11-21T11:15:13+00:00');
INSERT INTO "calls" VALUES('0f3bc61dc5e44e6c2a61ced0482f161a','evaluator','scripted/script.json@de4b7682180f7181','{"text":"If PersonX lives in Banjul, then PersonX can pay with the dalasi."}','{"token_count":11,"total":-10.0}',11,0,0.0,'2026-11-21T11:15:13+00:00');
CREATE TABLE "candidates" (
   "id" TEXT PRIMARY KEY,
   "question_id" TEXT NOT NULL REFERENCES "questions"("id"),
   "value" TEXT NOT NULL,
   "raw" TEXT NOT NULL,
   "call_id" TEXT NOT NULL REFERENCES "calls"("request_id"),
   "position" INTEGER NOT NULL,
   "rejected_by_parser" TEXT
) STRICT;
INSERT INTO "candidates" VALUES('1735f2ce8dbd70daed91ee8f3962081e','8c5e9ed2a2a07e2d113a5c75f27838f4','"Oslo"','1. Oslo.','db2ed890719a4ec19cac56c342a024a0',0,NULL);
INSERT INTO "candidates" VALUES('35c422a39477887b59d0dbee189d001c','8c5e9ed2a2a07e2d113a5c75f27838f4','"Lyon"','2. Lyon.','db2ed890719a4ec19cac56c342a024a0',1,NULL);
INSERT INTO "candidates" VALUES('ec7060b1d61cc0188dbaaa65274155f8','8c5e9ed2a2a07e2d113a5c75f27838f4','"Banjul"','3. Banjul.','db2ed890719a4ec19cac56c342a024a0',2,NULL);
INSERT INTO "candidates" VALUES('47bb4678e6e669fb08a8a3c6a3f18291','51273f44df3f7542cdf7bd9fbc36b00a','"Norway"','1. Norway.','b34b9be133a391a2f47a66c3b3f405db',0,NULL);
INSERT INTO "candidates" VALUES('17c81f505a3a22735170f700e9488123','5218093d4338ebfc42238445a0d5d9f5','"France"','1. France.','d9b461b11e661ccc555be8b55e1ba5b3',0,NULL);
INSERT INTO "candidates" VALUES('5f20e9a9ff9b6bb4290004b290de1fa6','5cdadb2876d795d91918728d44228a17','"The Gambia"','1. The Gambia.','9e50d740a9ad9c885096aab5e14aa34b',0,NULL);
INSERT INTO "candidates" VALUES('646dd60c61e294df608225b79bd5c92a','8fd768510e8fb8dd44e90f72738da302','"Norwegian krone"','1. Norwegian krone.','19fc8cb7c48b4f120aa7ef04305970b0',0,NULL);
INSERT INTO "candidates" VALUES('5b761054d2bf9e9ade2567989820dbfa','8fd768510e8fb8dd44e90f72738da302','"euro"','2. euro.','19fc8cb7c48b4f120aa7ef04305970b0',1,NULL);
INSERT INTO "candidates" VALUES('86093d01caab699a4a7d71d5c8e02b5d','f530c3469aabac228e08f06ec0b0971d','"euro"','1. euro.','896b2231cdf46b088a9d700f7ec7c504',0,NULL);
INSERT INTO "candidates" VALUES('ec519112b339e9a7acf9f0256844ec34','436898908eeee456305cbb95e76ec0bf','"dalasi"','1. dalasi.','ed5629d7030f84a8d37b239fb06447ec',0,NULL);
CREATE TABLE "certificates" (
   "id" TEXT PRIMARY KEY,
   "fact_group" TEXT NOT NULL,
   "precision" REAL NOT NULL,
   "confidence" REAL NOT NULL,
   "method" TEXT NOT NULL,
   "basis" TEXT NOT NULL,
   "threshold" REAL,
   "labels" INTEGER NOT NULL,
   "false" INTEGER NOT NULL,
   "bound" REAL NOT NULL,
   "accepted" INTEGER NOT NULL,
   "pool" INTEGER NOT NULL,
   "sample" TEXT NOT NULL,
   "shift" REAL,
   "reason" TEXT NOT NULL,
   "created" TEXT NOT NULL,
   "run_id" TEXT NOT NULL
, after_run TEXT, ends TEXT) STRICT;
CREATE TABLE "conflicts" (
   "id" TEXT PRIMARY KEY,
   "declaration" TEXT NOT NULL,
   "facts" TEXT NOT NULL,
   "lost" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "run_id" TEXT NOT NULL
) STRICT;
INSERT INTO "conflicts" VALUES('797c6c87a674c7b7efaa77252abfea49','irreflexive borders/2','["borders(\"Peru\", \"Peru\")"]','["borders(\"Peru\", \"Peru\")"]','it breaks "irreflexive borders/2" alone','ec568bc50df71828d568011ead2d4b93');
CREATE TABLE "constants" (
   "constant_id" TEXT PRIMARY KEY,
   "constant" TEXT NOT NULL
) STRICT;
INSERT INTO "constants" VALUES('2495ce761a2f6efd7ec8349ef3185e43','"Oslo"');
INSERT INTO "constants" VALUES('6bd35fa04a0ec26eb44e262bb1fb33c2','"Lyon"');
INSERT INTO "constants" VALUES('f117337b50b698a9aaa0fe74885dc087','"Banjul"');
INSERT INTO "constants" VALUES('a5abc90f8e4f5901cadcf6c4ba4528e4','"Norway"');
INSERT INTO "constants" VALUES('643be983bf99e46e024b9e8052873d90','"France"');
INSERT INTO "constants" VALUES('ef7278b09377c1ecb5a64becedf38d84','"The Gambia"');
INSERT INTO "constants" VALUES('a0ca58a5e5a270dd43b108ffa15eb642','"Norwegian krone"');
INSERT INTO "constants" VALUES('68577df5f34b21b2d7818ba7a891da4f','"euro"');
INSERT INTO "constants" VALUES('0269418b80a5da749859aec881119ae7','"dalasi"');
CREATE TABLE "decisions" (
   "id" TEXT PRIMARY KEY,
   "run_id" TEXT NOT NULL REFERENCES "runs"("id"),
   "gate" TEXT NOT NULL,
   "subject" TEXT NOT NULL,
   "accepted" INTEGER NOT NULL,
   "score" REAL,
   "threshold" REAL,
   "reason" TEXT NOT NULL,
   "rule" TEXT REFERENCES "rules"("name"),
   "distribution" TEXT,
   "step" INTEGER,
   "assessment_ids" TEXT NOT NULL
) STRICT;
INSERT INTO "decisions" VALUES('7730bd830f264dde0f0ffdcfce69ce60','ec568bc50df71828d568011ead2d4b93','type','1735f2ce8dbd70daed91ee8f3962081e',1,0.95,0.65,'P(of its type) 0.950 reaches 0.65',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('d15f6f94d237de4d6b281173aacb24e5','ec568bc50df71828d568011ead2d4b93','type','35c422a39477887b59d0dbee189d001c',1,0.95,0.65,'P(of its type) 0.950 reaches 0.65',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('a8ff16bdd0717d456b52ed460730bba0','ec568bc50df71828d568011ead2d4b93','type','ec7060b1d61cc0188dbaaa65274155f8',1,0.95,0.65,'P(of its type) 0.950 reaches 0.65',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('d25f9208e8e392c5ac56da2467e4cfb8','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Oslo"]]',1,-3.33333333333333348136e+00,-3.33333333333333348136e+00,'among the 3 likeliest of 3','currency','head',0,'[]');
INSERT INTO "decisions" VALUES('c24a58875bc1604d46e45d89a944d04d','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Lyon"]]',1,-3.33333333333333348136e+00,-3.33333333333333348136e+00,'among the 3 likeliest of 3','currency','head',0,'[]');
INSERT INTO "decisions" VALUES('3ec56130f4108cbb8ba1f2a5ea33b0c5','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Banjul"]]',1,-3.33333333333333348136e+00,-3.33333333333333348136e+00,'among the 3 likeliest of 3','currency','head',0,'[]');
INSERT INTO "decisions" VALUES('4674ece65131292dfa68d524930754c8','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Oslo"]]',1,-3.33333333333333348136e+00,-3.33333333333333348136e+00,'among the 3 least likely of 3','currency','long_tail',0,'[]');
INSERT INTO "decisions" VALUES('fb6c82d996b61b2ae6523e91cb9e2d9d','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Lyon"]]',1,-3.33333333333333348136e+00,-3.33333333333333348136e+00,'among the 3 least likely of 3','currency','long_tail',0,'[]');
INSERT INTO "decisions" VALUES('5508951e24be9646429de78f76467791','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Banjul"]]',1,-3.33333333333333348136e+00,-3.33333333333333348136e+00,'among the 3 least likely of 3','currency','long_tail',0,'[]');
INSERT INTO "decisions" VALUES('fae47a56bfa6b7938a01bc5071ad329a','ec568bc50df71828d568011ead2d4b93','critic','47bb4678e6e669fb08a8a3c6a3f18291',1,0.95,0.85,'P(true) 0.950 reaches 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('3742d1b971d6b32248c3104fee9545c3','ec568bc50df71828d568011ead2d4b93','critic','17c81f505a3a22735170f700e9488123',1,0.95,0.85,'P(true) 0.950 reaches 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('d581b7241f722f8a7654e913735e7d6a','ec568bc50df71828d568011ead2d4b93','critic','5f20e9a9ff9b6bb4290004b290de1fa6',1,0.95,0.85,'P(true) 0.950 reaches 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('1daa9245b5c97bfa266c85b7cda01ece','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Oslo"],["C","Norway"]]',1,-1.0,-1.0,'among the 3 likeliest of 3','currency','head',1,'[]');
INSERT INTO "decisions" VALUES('967f0e807e357405da4ad2d32390db36','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Lyon"],["C","France"]]',1,-1.0,-1.0,'among the 3 likeliest of 3','currency','head',1,'[]');
INSERT INTO "decisions" VALUES('cd48a91f55e9b35bf3dcae74fa0d49fe','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Banjul"],["C","The Gambia"]]',1,-9.0909090909090906063e-01,-1.0,'among the 3 likeliest of 3','currency','head',1,'[]');
INSERT INTO "decisions" VALUES('c4588cb03b3c9b7087e9f9d8a82157d1','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Oslo"],["C","Norway"]]',1,-1.0,-9.0909090909090906063e-01,'among the 3 least likely of 3','currency','long_tail',1,'[]');
INSERT INTO "decisions" VALUES('5de578cd140186494294da4703fdb2bf','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Lyon"],["C","France"]]',1,-1.0,-9.0909090909090906063e-01,'among the 3 least likely of 3','currency','long_tail',1,'[]');
INSERT INTO "decisions" VALUES('12861c06525b11d96232db58d45b02e9','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Banjul"],["C","The Gambia"]]',1,-9.0909090909090906063e-01,-9.0909090909090906063e-01,'among the 3 least likely of 3','currency','long_tail',1,'[]');
INSERT INTO "decisions" VALUES('5daf62d220a663a7133261891b6f4f86','ec568bc50df71828d568011ead2d4b93','critic','646dd60c61e294df608225b79bd5c92a',1,0.95,0.85,'P(true) 0.950 reaches 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('16dca54a891a28842b2f73e0c0b0771e','ec568bc50df71828d568011ead2d4b93','critic','5b761054d2bf9e9ade2567989820dbfa',0,0.1,0.85,'P(true) 0.100 is below the threshold 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('4861a92d8914727dd39cfca3e18546d3','ec568bc50df71828d568011ead2d4b93','critic','86093d01caab699a4a7d71d5c8e02b5d',1,0.95,0.85,'P(true) 0.950 reaches 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('b21683352ca986ea05f17ba4fdb5aa68','ec568bc50df71828d568011ead2d4b93','critic','ec519112b339e9a7acf9f0256844ec34',1,0.95,0.85,'P(true) 0.950 reaches 0.85',NULL,NULL,NULL,'[]');
INSERT INTO "decisions" VALUES('75ddf5a7b98c6ae7c5de41a38f425d16','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Oslo"],["B","Norwegian krone"],["C","Norway"]]',1,-4.1666666666666668517e-01,-4.54545454545454530315e-01,'among the 3 likeliest of 3','currency','head',2,'[]');
INSERT INTO "decisions" VALUES('5be685a06f2aab71f27f5c5b5ad97556','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Lyon"],["B","euro"],["C","France"]]',1,-4.54545454545454530315e-01,-4.54545454545454530315e-01,'among the 3 likeliest of 3','currency','head',2,'[]');
INSERT INTO "decisions" VALUES('09469d16ca1503ba80b4deed9dccd4ec','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Banjul"],["B","dalasi"],["C","The Gambia"]]',1,-4.1666666666666668517e-01,-4.54545454545454530315e-01,'among the 3 likeliest of 3','currency','head',2,'[]');
INSERT INTO "decisions" VALUES('022ded711f174f7ef7b51e539ce4fa67','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Oslo"],["B","Norwegian krone"],["C","Norway"]]',1,-4.1666666666666668517e-01,-4.1666666666666668517e-01,'among the 3 least likely of 3','currency','long_tail',2,'[]');
INSERT INTO "decisions" VALUES('17b579b95d67e80bf235008b80381c30','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Lyon"],["B","euro"],["C","France"]]',1,-4.54545454545454530315e-01,-4.1666666666666668517e-01,'among the 3 least likely of 3','currency','long_tail',2,'[]');
INSERT INTO "decisions" VALUES('ec5c5e8455b409a1d404f7b2216f5f95','ec568bc50df71828d568011ead2d4b93','likelihood','[["A","Banjul"],["B","dalasi"],["C","The Gambia"]]',1,-4.1666666666666668517e-01,-4.1666666666666668517e-01,'among the 3 least likely of 3','currency','long_tail',2,'[]');
CREATE TABLE "denials" (
   "id" TEXT PRIMARY KEY,
   "predicate" TEXT NOT NULL,
   "arguments" TEXT NOT NULL,
   "probability" REAL NOT NULL,
   "run_id" TEXT
) STRICT;
INSERT INTO "denials" VALUES('14677f1262089036043f7024f4153dab','uses_currency','["Peru","euro"]',0.01,'ec568bc50df71828d568011ead2d4b93');
CREATE TABLE derivations (rule TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, engine TEXT NOT NULL, fingerprint TEXT NOT NULL, statements INTEGER NOT NULL, stale INTEGER NOT NULL, words TEXT, indexed INTEGER NOT NULL DEFAULT 0);
INSERT INTO "derivations" VALUES('currency',1,'sql','974b5c735f4b070cb89f8f299d964841',3,0,NULL,0);
CREATE TABLE derived_ids (id TEXT NOT NULL, number INTEGER NOT NULL, instance INTEGER NOT NULL, PRIMARY KEY (id, number, instance)) WITHOUT ROWID;
CREATE TABLE derived_predicates (indicator TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, fingerprint TEXT NOT NULL, atoms INTEGER, maintained INTEGER NOT NULL DEFAULT 0);
CREATE TABLE "drawn_items" (
   "salt" TEXT,
   "item_id" TEXT,
   "score" REAL NOT NULL,
   "weight" REAL NOT NULL,
   "draw" REAL NOT NULL,
   PRIMARY KEY ("salt", "item_id")
) STRICT;
INSERT INTO "drawn_items" VALUES('s1','340e4cb68e218a47301387838851e098',0.9,1.0,0.25);
CREATE TABLE fact_changes (ref INTEGER NOT NULL, predicate TEXT NOT NULL, arguments TEXT NOT NULL);
CREATE TABLE "fact_labels" (
   "id" TEXT PRIMARY KEY,
   "fact_id" TEXT NOT NULL,
   "predicate" TEXT NOT NULL,
   "arguments" TEXT NOT NULL,
   "is_true" INTEGER NOT NULL,
   "source" TEXT NOT NULL
) STRICT;
CREATE TABLE "facts" (
   "id" TEXT PRIMARY KEY,
   "predicate" TEXT NOT NULL,
   "arguments" TEXT NOT NULL,
   "types" TEXT NOT NULL,
   "source" TEXT NOT NULL,
   "probability" REAL,
   "candidate_id" TEXT REFERENCES "candidates"("id"),
   "run_id" TEXT REFERENCES "runs"("id")
, basis TEXT) STRICT;
INSERT INTO "facts" VALUES('595eeb62e920410f66f14dfc78b29361','is_a_city_in','["Oslo","Norway"]','["City","Country"]','model',0.95,'47bb4678e6e669fb08a8a3c6a3f18291','ec568bc50df71828d568011ead2d4b93',NULL);
INSERT INTO "facts" VALUES('bafc76bc73e5dad3b72566c8d76c54bf','is_a_city_in','["Lyon","France"]','["City","Country"]','model',0.95,'17c81f505a3a22735170f700e9488123','ec568bc50df71828d568011ead2d4b93',NULL);
INSERT INTO "facts" VALUES('a70d8168fde6a53e9fe177f18894387f','is_a_city_in','["Banjul","The Gambia"]','["City","Country"]','model',0.95,'5f20e9a9ff9b6bb4290004b290de1fa6','ec568bc50df71828d568011ead2d4b93',NULL);
INSERT INTO "facts" VALUES('567e5d429140033232720213318ba3c8','uses_currency','["Norway","Norwegian krone"]','["Country","Currency"]','model',0.95,'646dd60c61e294df608225b79bd5c92a','ec568bc50df71828d568011ead2d4b93',NULL);
INSERT INTO "facts" VALUES('1f151007a39dffe43d91705118836f95','uses_currency','["France","euro"]','["Country","Currency"]','model',0.95,'86093d01caab699a4a7d71d5c8e02b5d','ec568bc50df71828d568011ead2d4b93',NULL);
INSERT INTO "facts" VALUES('190dd9f03ad230039ed3887cdef6a7b7','uses_currency','["The Gambia","dalasi"]','["Country","Currency"]','model',0.95,'ec519112b339e9a7acf9f0256844ec34','ec568bc50df71828d568011ead2d4b93',NULL);
INSERT INTO "facts" VALUES('20e8a94181da13579c4a57b0668b3af1','lives_in','["Ada","Lyon"]','["Person","City"]','given',NULL,NULL,NULL,NULL);
INSERT INTO "facts" VALUES('29faf78135108582ded92da8014bfba0','was_born_in','["Ada",1815]','[]','given',NULL,NULL,NULL,NULL);
INSERT INTO "facts" VALUES('2b5680d6279b9d153741de8cffe05de4','wrote','["O''Brien; DROP TABLE facts --","1984"]','[]','given',NULL,NULL,NULL,NULL);
INSERT INTO "facts" VALUES('fe1345bee56f4bf7c7687d89888bdfda','weighs','["Ada",{"decimal":"55.50"}]','[]','given',NULL,NULL,NULL,NULL);
CREATE TABLE facts_popularity (row INTEGER PRIMARY KEY, frequency REAL);
INSERT INTO "facts_popularity" VALUES(1,3.51);
INSERT INTO "facts_popularity" VALUES(2,3.8);
INSERT INTO "facts_popularity" VALUES(3,1.88);
INSERT INTO "facts_popularity" VALUES(4,2.43);
INSERT INTO "facts_popularity" VALUES(5,4.09);
INSERT INTO "facts_popularity" VALUES(6,0.0);
INSERT INTO "facts_popularity" VALUES(7,3.71);
INSERT INTO "facts_popularity" VALUES(8,3.71);
INSERT INTO "facts_popularity" VALUES(9,3.85);
INSERT INTO "facts_popularity" VALUES(10,3.71);
CREATE TABLE indexed_predicates (number INTEGER PRIMARY KEY, predicate TEXT NOT NULL UNIQUE, ref INTEGER NOT NULL, fact_id TEXT NOT NULL);
CREATE TABLE "judging_draws" (
   "kind" TEXT PRIMARY KEY,
   "salt" TEXT NOT NULL,
   "settings" TEXT NOT NULL,
   "reach" REAL NOT NULL,
   "created" TEXT NOT NULL
) STRICT;
INSERT INTO "judging_draws" VALUES('soundness','s1','{"critic": "embedded@1"}',0.5,'2026-11-24T00:00:00+00:00');
CREATE TABLE "model_profiles" (
   "model" TEXT PRIMARY KEY,
   "profile" TEXT NOT NULL,
   "scores" TEXT NOT NULL
) STRICT;
INSERT INTO "model_profiles" VALUES('openai/localhost:8000/tiny@chat','plain','{"hapax":3,"plain":17}');
CREATE TABLE "predicates" (
   "indicator" TEXT PRIMARY KEY,
   "name" TEXT NOT NULL,
   "argument_types" TEXT NOT NULL,
   "kind" TEXT NOT NULL,
   "affirmative" TEXT,
   "negated" TEXT,
   "question" TEXT
) STRICT;
INSERT INTO "predicates" VALUES('is_a_city_in/2','is_a_city_in','["City","Country"]','functional','[1] is a city in [2]','[1] is not a city in [2]','is [1] a city in [2]?');
INSERT INTO "predicates" VALUES('uses_currency/2','uses_currency','["Country","Currency"]','oracle','[1] uses the [2]','[1] does not use the [2]','does [1] use the [2]?');
INSERT INTO "predicates" VALUES('lives_in/2','lives_in','["Person","City"]','given','[1] lives in [2]','[1] does not live in [2]','does [1] live in [2]?');
INSERT INTO "predicates" VALUES('can_pay_with/2','can_pay_with','["Person","Currency"]','given','[1] can pay with the [2]','[1] cannot pay with the [2]','can [1] pay with the [2]?');
CREATE TABLE "proofs" (
   "key" TEXT PRIMARY KEY REFERENCES "statements"("key"),
   "proof" TEXT NOT NULL
) STRICT;
INSERT INTO "proofs" VALUES('037930260c5d76163a542f611651a5fe','{"steps":[{"by":"rule","goal":{"arguments":[{"type":"Person","variable":"X"},"Norwegian krone"],"predicate":"can_pay_with"},"premises":[1,2,3],"rule":"currency"},{"by":"assumption","goal":{"arguments":[{"type":"Person","variable":"X"},"Oslo"],"predicate":"lives_in"}},{"by":"fact","fact":"595eeb62e920410f66f14dfc78b29361","goal":{"arguments":["Oslo","Norway"],"predicate":"is_a_city_in"}},{"by":"fact","fact":"567e5d429140033232720213318ba3c8","goal":{"arguments":["Norway","Norwegian krone"],"predicate":"uses_currency"}}]}');
INSERT INTO "proofs" VALUES('6afb71da8421899ceddabea2ec45b2e6','{"steps":[{"by":"rule","goal":{"arguments":[{"type":"Person","variable":"X"},"euro"],"predicate":"can_pay_with"},"premises":[1,2,3],"rule":"currency"},{"by":"assumption","goal":{"arguments":[{"type":"Person","variable":"X"},"Lyon"],"predicate":"lives_in"}},{"by":"fact","fact":"bafc76bc73e5dad3b72566c8d76c54bf","goal":{"arguments":["Lyon","France"],"predicate":"is_a_city_in"}},{"by":"fact","fact":"1f151007a39dffe43d91705118836f95","goal":{"arguments":["France","euro"],"predicate":"uses_currency"}}]}');
INSERT INTO "proofs" VALUES('4ab645356f136cb4f0449ae1a3d95b79','{"steps":[{"by":"rule","goal":{"arguments":[{"type":"Person","variable":"X"},"dalasi"],"predicate":"can_pay_with"},"premises":[1,2,3],"rule":"currency"},{"by":"assumption","goal":{"arguments":[{"type":"Person","variable":"X"},"Banjul"],"predicate":"lives_in"}},{"by":"fact","fact":"a70d8168fde6a53e9fe177f18894387f","goal":{"arguments":["Banjul","The Gambia"],"predicate":"is_a_city_in"}},{"by":"fact","fact":"190dd9f03ad230039ed3887cdef6a7b7","goal":{"arguments":["The Gambia","dalasi"],"predicate":"uses_currency"}}]}');
INSERT INTO "proofs" VALUES('8dd64be07540613a512378b445164772','{"steps":[{"by":"rule","goal":{"arguments":[{"type":"Person","variable":"X"},"Norwegian krone"],"predicate":"can_pay_with"},"premises":[1,2,3],"rule":"currency"},{"by":"assumption","goal":{"arguments":[{"type":"Person","variable":"X"},"Oslo"],"predicate":"lives_in"}},{"by":"fact","fact":"595eeb62e920410f66f14dfc78b29361","goal":{"arguments":["Oslo","Norway"],"predicate":"is_a_city_in"}},{"by":"fact","fact":"567e5d429140033232720213318ba3c8","goal":{"arguments":["Norway","Norwegian krone"],"predicate":"uses_currency"}}]}');
INSERT INTO "proofs" VALUES('627e16a3df9aeb665882664e958006c3','{"steps":[{"by":"rule","goal":{"arguments":[{"type":"Person","variable":"X"},"euro"],"predicate":"can_pay_with"},"premises":[1,2,3],"rule":"currency"},{"by":"assumption","goal":{"arguments":[{"type":"Person","variable":"X"},"Lyon"],"predicate":"lives_in"}},{"by":"fact","fact":"bafc76bc73e5dad3b72566c8d76c54bf","goal":{"arguments":["Lyon","France"],"predicate":"is_a_city_in"}},{"by":"fact","fact":"1f151007a39dffe43d91705118836f95","goal":{"arguments":["France","euro"],"predicate":"uses_currency"}}]}');
INSERT INTO "proofs" VALUES('7e87779d1b786a68c749d4fb3209232f','{"steps":[{"by":"rule","goal":{"arguments":[{"type":"Person","variable":"X"},"dalasi"],"predicate":"can_pay_with"},"premises":[1,2,3],"rule":"currency"},{"by":"assumption","goal":{"arguments":[{"type":"Person","variable":"X"},"Banjul"],"predicate":"lives_in"}},{"by":"fact","fact":"a70d8168fde6a53e9fe177f18894387f","goal":{"arguments":["Banjul","The Gambia"],"predicate":"is_a_city_in"}},{"by":"fact","fact":"190dd9f03ad230039ed3887cdef6a7b7","goal":{"arguments":["The Gambia","dalasi"],"predicate":"uses_currency"}}]}');
CREATE TABLE "question_patterns" (
   "question_id" TEXT REFERENCES "questions"("id"),
   "position" INTEGER,
   "predicate" TEXT NOT NULL,
   "pattern_key" TEXT NOT NULL,
   PRIMARY KEY ("question_id", "position")
) STRICT;
INSERT INTO "question_patterns" VALUES('8c5e9ed2a2a07e2d113a5c75f27838f4',0,'is_a_city_in','34a753b3d1422b063de70ab2dcac9c97');
INSERT INTO "question_patterns" VALUES('51273f44df3f7542cdf7bd9fbc36b00a',0,'is_a_city_in','38082b4e2dd44721845d6cffa8a34c55');
INSERT INTO "question_patterns" VALUES('5218093d4338ebfc42238445a0d5d9f5',0,'is_a_city_in','4fc811bcc6cbe456071d9bf7b3d84dcb');
INSERT INTO "question_patterns" VALUES('5cdadb2876d795d91918728d44228a17',0,'is_a_city_in','c44587f3f1ee0454702d33d0c233ebbc');
INSERT INTO "question_patterns" VALUES('8fd768510e8fb8dd44e90f72738da302',0,'uses_currency','68183f59b242ecf5780e3effe3d3c292');
INSERT INTO "question_patterns" VALUES('f530c3469aabac228e08f06ec0b0971d',0,'uses_currency','3257a33dd54bc16cf9d162fefc19f755');
INSERT INTO "question_patterns" VALUES('436898908eeee456305cbb95e76ec0bf',0,'uses_currency','417ebcf05596cf6d8d8a98162e9ba9f0');
CREATE TABLE "questions" (
   "id" TEXT PRIMARY KEY,
   "patterns" TEXT NOT NULL,
   "data_type" TEXT NOT NULL,
   "functional" INTEGER NOT NULL,
   "calls" INTEGER NOT NULL,
   "calls_without_acceptance" INTEGER NOT NULL,
   "exhausted" INTEGER NOT NULL
) STRICT;
INSERT INTO "questions" VALUES('8c5e9ed2a2a07e2d113a5c75f27838f4','[["is_a_city_in",[null,"[B]"]]]','City',0,3,2,1);
INSERT INTO "questions" VALUES('51273f44df3f7542cdf7bd9fbc36b00a','[["is_a_city_in",["Oslo",null]]]','Country',1,2,0,1);
INSERT INTO "questions" VALUES('5218093d4338ebfc42238445a0d5d9f5','[["is_a_city_in",["Lyon",null]]]','Country',1,2,0,1);
INSERT INTO "questions" VALUES('5cdadb2876d795d91918728d44228a17','[["is_a_city_in",["Banjul",null]]]','Country',1,2,0,1);
INSERT INTO "questions" VALUES('8fd768510e8fb8dd44e90f72738da302','[["uses_currency",["Norway",null]]]','Currency',0,3,2,1);
INSERT INTO "questions" VALUES('f530c3469aabac228e08f06ec0b0971d','[["uses_currency",["France",null]]]','Currency',0,3,2,1);
INSERT INTO "questions" VALUES('436898908eeee456305cbb95e76ec0bf','[["uses_currency",["The Gambia",null]]]','Currency',0,3,2,1);
CREATE TABLE relation_state (ref INTEGER NOT NULL, fact_id TEXT NOT NULL);
INSERT INTO "relation_state" VALUES(10,'fe1345bee56f4bf7c7687d89888bdfda');
CREATE TABLE relations (indicator TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, largest INTEGER NOT NULL, inexact INTEGER NOT NULL, shadowed INTEGER NOT NULL);
INSERT INTO "relations" VALUES('is_a_city_in/2',1,0,0,0);
INSERT INTO "relations" VALUES('uses_currency/2',2,0,0,0);
INSERT INTO "relations" VALUES('lives_in/2',3,0,0,0);
INSERT INTO "relations" VALUES('was_born_in/2',4,1815,0,0);
INSERT INTO "relations" VALUES('wrote/2',5,0,0,0);
INSERT INTO "relations" VALUES('weighs/2',6,0,1,1);
INSERT INTO "relations" VALUES('can_pay_with/2',7,0,0,0);
CREATE TABLE revisable_statements (key TEXT PRIMARY KEY, checked TEXT, lapsed TEXT) WITHOUT ROWID;
CREATE TABLE "rule_texts" (
   "name" TEXT PRIMARY KEY,
   "text" TEXT NOT NULL,
   "checksum" TEXT NOT NULL,
   "command" TEXT NOT NULL
) STRICT;
CREATE TABLE "rules" (
   "name" TEXT PRIMARY KEY,
   "text" TEXT NOT NULL,
   "domain" TEXT,
   "principle" TEXT,
   "polarity" TEXT
) STRICT;
INSERT INTO "rules" VALUES('currency','@name currency
@domain locational
@generic X
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> can_pay_with(Person X, Currency B)','locational','compatibility','positive');
CREATE TABLE "runs" (
   "id" TEXT PRIMARY KEY,
   "command" TEXT NOT NULL,
   "settings" TEXT NOT NULL,
   "fingerprint" TEXT NOT NULL,
   "started" TEXT NOT NULL,
   "finished" TEXT,
   "status" TEXT NOT NULL,
   "summary" TEXT NOT NULL
) STRICT;
INSERT INTO "runs" VALUES('ec568bc50df71828d568011ead2d4b93','search','{"beam":200,"calls_per_question":4,"compat":null,"critic":true,"distributions":["head","long_tail"],"keep_share":0.75,"likelihood":"model","max_statements":null,"models":["scripted/script.json@de4b7682180f7181","scripted/script.json@de4b7682180f7181","scripted/script.json@de4b7682180f7181","scripted/script.json@de4b7682180f7181"],"plan":"cheapest","rules":["currency"],"rules_together":8,"seed":0,"temperature":0.7,"threshold_cap":1.0,"values_per_call":50}','ec568bc50df71828d568011ead2d4b93','2026-11-21T11:15:13+00:00','2026-11-21T11:15:13.816+00:00','done','{"calls":{"critic":{"calls":16,"completion_tokens":0,"cost":0.0,"hits":0,"prompt_tokens":0},"evaluator":{"calls":3,"completion_tokens":0,"cost":0.0,"hits":0,"prompt_tokens":34},"knowledge":{"calls":18,"completion_tokens":29,"cost":0.0,"hits":0,"prompt_tokens":477},"likelihood":{"calls":9,"completion_tokens":0,"cost":0.0,"hits":0,"prompt_tokens":110}},"cut":[],"mean_delta":0.0,"skipped":[],"statements":{"head":3,"long_tail":3}}');
CREATE TABLE statement_facts (key TEXT NOT NULL, fact_id TEXT NOT NULL, PRIMARY KEY (fact_id, key)) WITHOUT ROWID;
INSERT INTO "statement_facts" VALUES('037930260c5d76163a542f611651a5fe','567e5d429140033232720213318ba3c8');
INSERT INTO "statement_facts" VALUES('037930260c5d76163a542f611651a5fe','595eeb62e920410f66f14dfc78b29361');
INSERT INTO "statement_facts" VALUES('4ab645356f136cb4f0449ae1a3d95b79','190dd9f03ad230039ed3887cdef6a7b7');
INSERT INTO "statement_facts" VALUES('4ab645356f136cb4f0449ae1a3d95b79','a70d8168fde6a53e9fe177f18894387f');
INSERT INTO "statement_facts" VALUES('627e16a3df9aeb665882664e958006c3','1f151007a39dffe43d91705118836f95');
INSERT INTO "statement_facts" VALUES('627e16a3df9aeb665882664e958006c3','bafc76bc73e5dad3b72566c8d76c54bf');
INSERT INTO "statement_facts" VALUES('6afb71da8421899ceddabea2ec45b2e6','1f151007a39dffe43d91705118836f95');
INSERT INTO "statement_facts" VALUES('6afb71da8421899ceddabea2ec45b2e6','bafc76bc73e5dad3b72566c8d76c54bf');
INSERT INTO "statement_facts" VALUES('7e87779d1b786a68c749d4fb3209232f','190dd9f03ad230039ed3887cdef6a7b7');
INSERT INTO "statement_facts" VALUES('7e87779d1b786a68c749d4fb3209232f','a70d8168fde6a53e9fe177f18894387f');
INSERT INTO "statement_facts" VALUES('8dd64be07540613a512378b445164772','567e5d429140033232720213318ba3c8');
INSERT INTO "statement_facts" VALUES('8dd64be07540613a512378b445164772','595eeb62e920410f66f14dfc78b29361');
CREATE TABLE "statements" (
   "key" TEXT PRIMARY KEY,
   "id" TEXT NOT NULL,
   "rule" TEXT NOT NULL REFERENCES "rules"("name"),
   "distribution" TEXT NOT NULL,
   "run_id" TEXT NOT NULL REFERENCES "runs"("id"),
   "substitution" TEXT NOT NULL,
   "premise" TEXT NOT NULL,
   "conclusion" TEXT NOT NULL,
   "ranking_text" TEXT NOT NULL,
   "log_likelihood" REAL
) STRICT;
INSERT INTO "statements" VALUES('037930260c5d76163a542f611651a5fe','340e4cb68e218a47301387838851e098','currency','head','ec568bc50df71828d568011ead2d4b93','[["A","Oslo"],["C","Norway"],["B","Norwegian krone"]]','PersonX lives in Oslo','PersonX can pay with the Norwegian krone','PersonX lives in Oslo and Oslo is a city in Norway and Norway uses the Norwegian krone and PersonX can pay with the Norwegian krone',-8.3333333333333337034e-01);
INSERT INTO "statements" VALUES('6afb71da8421899ceddabea2ec45b2e6','3f394085feb8b341ad5922813a1c5bf7','currency','head','ec568bc50df71828d568011ead2d4b93','[["A","Lyon"],["C","France"],["B","euro"]]','PersonX lives in Lyon','PersonX can pay with the euro','PersonX lives in Lyon and Lyon is a city in France and France uses the euro and PersonX can pay with the euro',-9.0909090909090906063e-01);
INSERT INTO "statements" VALUES('4ab645356f136cb4f0449ae1a3d95b79','cfb9a8fb28bba36e0e9d49d9418edc1e','currency','head','ec568bc50df71828d568011ead2d4b93','[["A","Banjul"],["C","The Gambia"],["B","dalasi"]]','PersonX lives in Banjul','PersonX can pay with the dalasi','PersonX lives in Banjul and Banjul is a city in The Gambia and The Gambia uses the dalasi and PersonX can pay with the dalasi',-9.0909090909090906063e-01);
INSERT INTO "statements" VALUES('8dd64be07540613a512378b445164772','340e4cb68e218a47301387838851e098','currency','long_tail','ec568bc50df71828d568011ead2d4b93','[["A","Oslo"],["C","Norway"],["B","Norwegian krone"]]','PersonX lives in Oslo','PersonX can pay with the Norwegian krone','PersonX lives in Oslo and Oslo is a city in Norway and Norway uses the Norwegian krone and PersonX can pay with the Norwegian krone',-8.3333333333333337034e-01);
INSERT INTO "statements" VALUES('627e16a3df9aeb665882664e958006c3','3f394085feb8b341ad5922813a1c5bf7','currency','long_tail','ec568bc50df71828d568011ead2d4b93','[["A","Lyon"],["C","France"],["B","euro"]]','PersonX lives in Lyon','PersonX can pay with the euro','PersonX lives in Lyon and Lyon is a city in France and France uses the euro and PersonX can pay with the euro',-9.0909090909090906063e-01);
INSERT INTO "statements" VALUES('7e87779d1b786a68c749d4fb3209232f','cfb9a8fb28bba36e0e9d49d9418edc1e','currency','long_tail','ec568bc50df71828d568011ead2d4b93','[["A","Banjul"],["C","The Gambia"],["B","dalasi"]]','PersonX lives in Banjul','PersonX can pay with the dalasi','PersonX lives in Banjul and Banjul is a city in The Gambia and The Gambia uses the dalasi and PersonX can pay with the dalasi',-9.0909090909090906063e-01);
CREATE TABLE statements_popularity (row INTEGER PRIMARY KEY, frequency REAL);
INSERT INTO "statements_popularity" VALUES(1,2.43);
INSERT INTO "statements_popularity" VALUES(2,3.8);
INSERT INTO "statements_popularity" VALUES(3,0.0);
INSERT INTO "statements_popularity" VALUES(4,2.43);
INSERT INTO "statements_popularity" VALUES(5,3.8);
INSERT INTO "statements_popularity" VALUES(6,0.0);
CREATE TABLE symbols (id INTEGER PRIMARY KEY, symbol TEXT NOT NULL UNIQUE);
INSERT INTO "symbols" VALUES(2,'"Oslo"');
INSERT INTO "symbols" VALUES(4,'"Norway"');
INSERT INTO "symbols" VALUES(6,'"Lyon"');
INSERT INTO "symbols" VALUES(8,'"France"');
INSERT INTO "symbols" VALUES(10,'"Banjul"');
INSERT INTO "symbols" VALUES(12,'"The Gambia"');
INSERT INTO "symbols" VALUES(14,'"Norwegian krone"');
INSERT INTO "symbols" VALUES(16,'"euro"');
INSERT INTO "symbols" VALUES(18,'"dalasi"');
INSERT INTO "symbols" VALUES(20,'"Ada"');
INSERT INTO "symbols" VALUES(22,'"O''Brien; DROP TABLE facts --"');
INSERT INTO "symbols" VALUES(24,'"1984"');
INSERT INTO "symbols" VALUES(26,'{"decimal":"55.5"}');
CREATE TABLE "type_facts" (
   "constant_id" TEXT REFERENCES "constants"("constant_id"),
   "data_type" TEXT,
   "probability" REAL,
   PRIMARY KEY ("constant_id", "data_type")
) STRICT;
INSERT INTO "type_facts" VALUES('2495ce761a2f6efd7ec8349ef3185e43','City',0.95);
INSERT INTO "type_facts" VALUES('6bd35fa04a0ec26eb44e262bb1fb33c2','City',0.95);
INSERT INTO "type_facts" VALUES('f117337b50b698a9aaa0fe74885dc087','City',0.95);
INSERT INTO "type_facts" VALUES('a5abc90f8e4f5901cadcf6c4ba4528e4','Country',0.95);
INSERT INTO "type_facts" VALUES('643be983bf99e46e024b9e8052873d90','Country',0.95);
INSERT INTO "type_facts" VALUES('ef7278b09377c1ecb5a64becedf38d84','Country',0.95);
INSERT INTO "type_facts" VALUES('a0ca58a5e5a270dd43b108ffa15eb642','Currency',0.95);
INSERT INTO "type_facts" VALUES('68577df5f34b21b2d7818ba7a891da4f','Currency',0.95);
INSERT INTO "type_facts" VALUES('0269418b80a5da749859aec881119ae7','Currency',0.95);
CREATE TABLE unindexed_facts (ref INTEGER PRIMARY KEY);
CREATE TABLE "votes" (
   "id" TEXT PRIMARY KEY,
   "statement_id" TEXT NOT NULL,
   "question" TEXT NOT NULL,
   "voter" TEXT NOT NULL,
   "answer" TEXT NOT NULL,
   "comment" TEXT NOT NULL
) STRICT;
INSERT INTO "votes" VALUES('185d086a25873df979b1b0fd889312ff','340e4cb68e218a47301387838851e098','entailment','ann','yes','a comment
of two lines');
CREATE TABLE "withdrawals" (
   "fact_id" TEXT,
   "predicate" TEXT NOT NULL,
   "arguments" TEXT NOT NULL,
   "types" TEXT NOT NULL,
   "source" TEXT NOT NULL,
   "reason" TEXT NOT NULL,
   "author" TEXT NOT NULL,
   "withdrawn" TEXT,
   "probability" REAL,
   "candidate_id" TEXT,
   "run_id" TEXT,
   "basis" TEXT,
   "restored" TEXT,
   PRIMARY KEY ("fact_id", "withdrawn")
) STRICT;
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX "idx_runs_fingerprint"
    ON "runs" ("fingerprint");
CREATE INDEX "idx_type_facts_data_type"
    ON "type_facts" ("data_type");
CREATE INDEX "idx_question_patterns_pattern_key"
    ON "question_patterns" ("pattern_key");
CREATE INDEX "idx_candidates_question_id"
    ON "candidates" ("question_id");
CREATE INDEX "idx_decisions_subject"
    ON "decisions" ("subject");
CREATE INDEX "idx_decisions_run_id_gate"
    ON "decisions" ("run_id", "gate");
CREATE INDEX "idx_facts_predicate"
    ON "facts" ("predicate");
CREATE INDEX "idx_facts_candidate_id"
    ON "facts" ("candidate_id");
CREATE INDEX "idx_statements_id"
    ON "statements" ("id");
CREATE INDEX "idx_statements_run_id_rule"
    ON "statements" ("run_id", "rule");
CREATE INDEX "idx_statements_rule"
    ON "statements" ("rule");
CREATE INDEX "idx_votes_statement_id"
    ON "votes" ("statement_id");
CREATE TRIGGER fact_deleted AFTER DELETE ON facts BEGIN INSERT INTO fact_changes VALUES (OLD.rowid, OLD.predicate, OLD.arguments); END;
CREATE TRIGGER fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments BEGIN INSERT INTO fact_changes VALUES (OLD.rowid, OLD.predicate, OLD.arguments), (NEW.rowid, OLD.predicate, OLD.arguments); END;
CREATE INDEX relation_1_by_2 ON "_relation_1" (a2, a1);
CREATE INDEX relation_2_by_2 ON "_relation_2" (a2, a1);
CREATE INDEX relation_3_by_2 ON "_relation_3" (a2, a1);
CREATE INDEX relation_4_by_2 ON "_relation_4" (a2, a1);
CREATE INDEX relation_5_by_2 ON "_relation_5" (a2, a1);
CREATE INDEX relation_6_by_2 ON "_relation_6" (a2, a1);
CREATE INDEX "idx_denials_predicate"
    ON "denials" ("predicate");
CREATE INDEX "idx_conflicts_run_id"
    ON "conflicts" ("run_id");
CREATE TRIGGER indexed_fact_deleted AFTER DELETE ON facts BEGIN INSERT OR IGNORE INTO unindexed_facts VALUES (OLD.rowid); END;
CREATE INDEX "idx_attempts_model"
    ON "attempts" ("model");
CREATE INDEX "idx_fact_labels_fact_id"
    ON "fact_labels" ("fact_id");
CREATE INDEX "idx_certificates_run_id"
    ON "certificates" ("run_id");
CREATE INDEX "idx_withdrawals_predicate"
    ON "withdrawals" ("predicate");
CREATE INDEX statement_facts_by_key ON statement_facts (key);
CREATE TRIGGER fact_withdrawn AFTER DELETE ON facts WHEN NOT EXISTS (SELECT 1 FROM withdrawals WHERE fact_id = OLD.id AND restored IS NULL) BEGIN INSERT OR IGNORE INTO withdrawals (fact_id, predicate, arguments, types, source, reason, author, withdrawn, probability, candidate_id, run_id, basis) VALUES (OLD.id, OLD.predicate, OLD.arguments, OLD.types, OLD.source, 'its row was deleted', 'another program', CURRENT_TIMESTAMP, OLD.probability, OLD.candidate_id, OLD.run_id, OLD.basis); END;
CREATE TRIGGER fact_numbered_again AFTER INSERT ON facts WHEN NEW.rowid <= (SELECT max(ref) FROM relation_state) BEGIN INSERT INTO fact_changes VALUES (NEW.rowid, NEW.predicate, NEW.arguments); END;
CREATE INDEX statements_by_likelihood ON statements (log_likelihood);
CREATE INDEX statements_by_rule ON statements (rule, log_likelihood);
CREATE INDEX statements_by_end ON statements (distribution, log_likelihood);
CREATE INDEX statements_by_premise ON statements (premise);
CREATE INDEX derived_ids_by_instance ON derived_ids (number, instance);
CREATE INDEX statements_popularity_by_frequency ON statements_popularity (frequency);
CREATE TRIGGER statements_popularity_deleted AFTER DELETE ON statements BEGIN DELETE FROM statements_popularity WHERE row = OLD.rowid; END;
CREATE TRIGGER statements_popularity_changed AFTER UPDATE OF substitution ON statements BEGIN DELETE FROM statements_popularity WHERE row >= OLD.rowid; END;
CREATE INDEX facts_popularity_by_frequency ON facts_popularity (frequency);
CREATE TRIGGER facts_popularity_deleted AFTER DELETE ON facts BEGIN DELETE FROM facts_popularity WHERE row = OLD.rowid; END;
CREATE TRIGGER facts_popularity_changed AFTER UPDATE OF arguments ON facts BEGIN DELETE FROM facts_popularity WHERE row >= OLD.rowid; END;
CREATE TRIGGER indexed_fact_changed AFTER UPDATE ON facts WHEN OLD.rowid <> NEW.rowid OR OLD.predicate <> NEW.predicate OR OLD.arguments <> NEW.arguments OR OLD.types <> NEW.types BEGIN INSERT INTO unindexed_facts SELECT ref FROM (SELECT OLD.rowid AS ref UNION SELECT NEW.rowid) WHERE ref NOT IN (SELECT ref FROM unindexed_facts); END;
COMMIT;
