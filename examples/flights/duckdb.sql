-- The same questions in DuckDB, each below its number and goal.

-- 1. flies_at_christmas(C, N, S)
SELECT DISTINCT carrier, flight, time_hour FROM flight WHERE dest = 'HNL' AND time_hour::date = '2013-12-25'

-- 2. flights_in(M, K)
SELECT month(time_hour), count(*) FROM flight GROUP BY 1

-- 3. is_late_by(C, V)
SELECT carrier, round(avg(arr_delay), 2) FROM flown GROUP BY 1

-- 4. is_american(T, V)
SELECT name, round(avg(arr_delay), 2) FROM flown JOIN airline USING (carrier) WHERE contains(lower(name), 'america') GROUP BY 1

-- 5. cancelled(A, K)
SELECT origin, count(*) FROM flight ANTI JOIN flown USING (time_hour, carrier, flight) GROUP BY 1

-- 6. serves_alone(C, A)
SELECT min(carrier), dest FROM flight GROUP BY 2 HAVING count(DISTINCT carrier) = 1

-- 7. flew_old(P, T, V)
SELECT DISTINCT tailnum, manufacturer, year(time_hour) - year FROM flown JOIN plane USING (tailnum)
WHERE year(time_hour) - year > 50

-- 8. flew_all_year(P, V)
SELECT tailnum, floor(epoch(max(time_hour) - min(time_hour)) / 86400) AS days FROM flown GROUP BY 1 HAVING days >= 364

-- 9. is_fast(C, N, S, V)
SELECT carrier, flight, time_hour, round(60 * distance / air_time)
FROM flight JOIN flown USING (time_hour, carrier, flight) WHERE 60 * distance / air_time > 600

-- 10. way(A, B, K)
WITH RECURSIVE leg AS (
  SELECT DISTINCT origin AS a, dest AS b, distance AS m FROM flight
  UNION SELECT DISTINCT dest, origin, distance FROM flight
), way AS (
  SELECT a, b, m, 1 AS legs FROM leg
  UNION SELECT way.a, leg.b, min(way.m + leg.m), legs + 1 FROM way JOIN leg ON way.b = leg.a WHERE legs < 5 GROUP BY 1, 2, 4
)
SELECT a, b, min(m) FROM way GROUP BY 1, 2
