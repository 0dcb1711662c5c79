% The same by SWI-Prolog: the sum over all ways.
part(car, wheel, 4).  part(car, axle, 2).  part(wheel, bolt, 2).  part(axle, bolt, 4).
way(X, Y, N) :- part(X, Y, N).
way(X, Y, N) :- part(X, Z, M), way(Z, Y, L), N is M * L.
total(X, Y, K) :- setof(N, N^way(X, Y, N), _), aggregate_all(sum(N), way(X, Y, N), K).
