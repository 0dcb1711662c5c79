"""What LINK is compared with: statements by instruction alone, reranking afterwards, and the grid of tables 7 to 10."""
