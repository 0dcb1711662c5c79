% The same by SWI-Prolog: a table keeps the smallest value.
:- table distance(_, _, min).
road(a, b, 4).  road(b, c, 3).  road(a, c, 9).  road(c, d, 1).  road(d, a, 2).
distance(X, Y, N) :- road(X, Y, N).
distance(X, Y, N) :- distance(X, Z, L), road(Z, Y, M), N is L + M.
