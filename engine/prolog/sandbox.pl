% The allow-list of predicates that typed goals may call. Everything that is neither named here nor defined by the loaded
% program is refused, `Module:Goal` and `call/N` included. library(sandbox) is not used: 9.0.4 lets shell/1 through in
% two ways.

:- module(hapax_sandbox, [safe_goal/3]).

:- use_module(library(solution_sequences)).

%!  safe_goal(+Goal, +Module, -Safe)
%   Safe is Goal with every call qualified by the module that defines it. Throws refused(Name/Arity).
%   A predicate of rules, and a disjunction, gives each answer once, however many proofs it has: findall/3, bagof/3 and
%   aggregate_all/3 then collect answers.
%   The order of the clauses matters: a rule may define a predicate that is called like a built-in one, such as length/2.
safe_goal(Goal, _, _) :- var(Goal), !, throw(refused(variable/0)).
safe_goal(_:_, _, _) :- !, throw(refused((:)/2)).
safe_goal((A ; B), Module, Safe) :- !,
    safe_goals([A, B], Module, [C, D]),
    ( A = (_ -> _) -> Safe = (C ; D) ; Safe = solution_sequences:distinct((C ; D)) ).
safe_goal(Goal, Module, Safe) :- control(Goal, Parts, Safe, SafeParts), !, safe_goals(Parts, Module, SafeParts).
safe_goal(Goal, Module, Safe) :- callable(Goal), defined_by_program(Goal, Module), !,
    ( is_set(Goal, Module) -> Safe = Module:Goal ; Safe = solution_sequences:distinct(Module:Goal) ).
safe_goal(Goal, Module, Safe) :- meta(Goal, Inner, Safe, SafeInner), !, safe_inner(Inner, Module, SafeInner).
safe_goal(Goal, _, Home:Goal) :- callable(Goal), functor(Goal, Name, Arity), builtin(Home, Name/Arity), !.
safe_goal(Goal, _, _) :- callable(Goal), !, functor(Goal, Name, Arity), throw(refused(Name/Arity)).
safe_goal(Goal, _, _) :- throw(refused(Goal)).

safe_goals([], _, []).
safe_goals([Goal|Goals], Module, [Safe|Safes]) :- safe_goal(Goal, Module, Safe), safe_goals(Goals, Module, Safes).

control(true, [], true, []).
control(fail, [], fail, []).
control(false, [], false, []).
control((A, B), [A, B], (C, D), [C, D]).
control((A -> B), [A, B], (C -> D), [C, D]).
control(\+ A, [A], \+ B, [B]).
control(once(A), [A], once(B), [B]).

meta(findall(T, G, L), G, findall(T, S, L), S).
meta(forall(C, A), (C, A), forall(SC, SA), (SC, SA)).
meta(aggregate_all(Spec, G, R), G, aggregate:aggregate_all(Spec, S, R), S) :- aggregate_spec(Spec).
meta(setof(T, G, L), G, setof(T, S, L), S).
meta(bagof(T, G, L), G, bagof(T, S, L), S).

% `Variable^Goal` names a variable that setof/3 and bagof/3 do not group by; elsewhere it is refused by its name, (^)/2.
safe_inner(Goal, _, _) :- var(Goal), !, throw(refused(variable/0)).
safe_inner(V^Goal, Module, V^Safe) :- !, safe_inner(Goal, Module, Safe).
safe_inner(Goal, Module, Safe) :- safe_goal(Goal, Module, Safe).

aggregate_spec(Spec) :- var(Spec), !, throw(refused(variable/0)).
aggregate_spec(count).
aggregate_spec(Spec) :- compound(Spec), functor(Spec, Name, 1), memberchk(Name, [sum, max, min, bag, set]).
aggregate_spec(Spec) :- compound(Spec), functor(Spec, Name, 2), memberchk(Name, [max, min]).

% A predicate that the generated program itself defines (its module imports none), other than its helpers.
defined_by_program(Goal, Module) :-
    functor(Goal, Name, _),
    '$c_current_predicate'(_, Module:Goal),  % predicate_property/2 would look for a library to load
    \+ sub_atom(Name, 0, _, _, 'hapax_'),
    \+ sub_atom(Name, 0, _, _, '$').

% Facts are written once each, and tables have no duplicates.
is_set(Goal, Module) :- predicate_property(Module:Goal, number_of_rules(0)), !.
is_set(Goal, Module) :- predicate_property(Module:Goal, tabled).

builtin(system, Name/2) :-
    memberchk(Name, [(<), (=<), (>), (>=), (=:=), (=\=), is, (=), (\=), (==), (\==), (@<), (@>), (@=<), (@>=), dif]).
builtin(system, length/2).
builtin(system, between/3).
builtin(system, msort/2).
builtin(system, sort/2).
builtin(lists, member/2).
builtin(lists, memberchk/2).
builtin(lists, nth1/3).
builtin(lists, sum_list/2).
builtin(lists, max_list/2).
builtin(lists, min_list/2).
