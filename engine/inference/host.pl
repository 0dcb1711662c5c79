% The Prolog part of the worker process: loads a program, runs a goal, and writes its answers in bulk.
%
% The output is a prefix code that needs no escaping, because every text is preceded by its length in characters:
%   a<n>:text  an atom      s<n>:text  a string       i<digits>;  an integer     f<digits>;  a float
%   q<n>/<d>;  a rational   v<n>:name  a free variable c<n>:+n+1 cells: name, arguments   l<n>:+n cells: a list
%   r  starts a row         e  starts the end mark: two atoms, kind and message
% Without the end mark the goal's process died, and its output is discarded.

:- module(hapax_host, [ready/0, limit_stacks/1, load_program/3, answer/4, need/3, demanded/3,
                       open_feed/2, fetch/2]).

:- use_module(library(aggregate)).
:- use_module(library(apply)).
:- use_module(library(error)).
:- use_module(library(lists)).
:- use_module(library(nb_set)).
:- use_module(library(option)).
:- use_module(library(ordsets)).
:- use_module(library(pairs)).
:- use_module(library(solution_sequences)).
:- use_module(library(tabling)).
:- use_module(sandbox).

:- dynamic fault/3, loading/1.
:- multifile user:message_hook/3.
:- dynamic user:message_hook/3.

% With the debugger on, an error would wait for standard input. Autoloading is switched off by ready/0, once everything
% that goals may use is loaded: a limit that ends a goal during an autoload would leave that library half loaded.
:- set_prolog_flag(debug_on_error, false).
:- set_prolog_flag(on_error, print).
:- set_prolog_flag(on_warning, print).
:- set_prolog_flag(report_error, true).
% Moved into the head, a unification with a decimal aborts SWI-Prolog 9.0.4: `d(K, K) :- K = 5r2` (pl-comp.c, arg1Key).
:- set_prolog_flag(optimise_unify, false).

user:message_hook(Term, Kind, Lines) :-
    hapax_host:loading(_),
    memberchk(Kind, [error, warning]),
    hapax_host:message_line(Term, Line),
    hapax_host:message_text(Lines, Text),
    assertz(hapax_host:fault(Kind, Line, Text)).

message_line(error(_, file(_, Line, _, _)), Line) :- !.
message_line(error(_, stream(_, Line, _, _)), Line) :- !.
message_line(_, Line) :- source_location(_, Line), !.
message_line(_, 0).

message_text(Lines, Text) :-
    with_output_to(string(Text), print_message_lines(current_output, '', Lines)).

%!  ready
%   Switch off autoloading: everything is loaded.
ready :- set_prolog_flag(autoload, false).

%!  limit_stacks(+Megabytes)
%   Limit the stacks and tables of the goal's process. The kernel's limit on the address space covers everything else.
limit_stacks(Megabytes) :-
    atom_number(Megabytes, N),
    Stacks is N * 1024 * 256, Tables is N * 1024 * 512,
    set_prolog_flag(stack_limit, Stacks),
    set_prolog_flag(table_space, Tables).

%!  load_program(+File, +Module, +Old)
%   Load File into the private Module, after unloading the file Old. Writes each error and warning as a row
%   (severity, line, message).
load_program(File, Module, Old) :-
    ( source_file(Old) -> unload_file(Old) ; true ),
    retractall(fault(_, _, _)),
    set_module(Module:base(system)),
    setup_call_cleanup(
        assertz(loading(File)),
        catch(load_files(Module:File, [silent(true), encoding(utf8)]), Error, print_message(error, Error)),
        retractall(loading(_))),
    out(Out),
    forall(fault(Kind, Line, Text), emit_row(Out, [Kind, Line, Text])),
    emit_end(Out, done, '').

%!  answer(+Text, +Names, +Module, +Options)
%   Run the goal Text in Module, and for every answer write a row with the variables Names, which are joined by commas.
%   Options is the text of options(Trust, Answers, Inferences, Distinct).
answer(Text, Names, Module, Options) :-
    out(Out),
    catch(answer_(Text, Names, Module, Options, Out, Kind, Message), Error, error_end(Error, Kind, Message)),
    emit_end(Out, Kind, Message).

answer_(Text, NamesText, Module, OptionsText, Out, Kind, Message) :-
    nb_setval(hapax_module, Module),
    term_to_atom(options(Trust, Answers, Inferences, Distinct), OptionsText),
    ( NamesText == '' -> Names = [] ; atomic_list_concat(Names, ',', NamesText) ),
    goal_term(Text, Module, Goal0, Bindings),
    ( Trust == trusted -> Goal = Module:Goal0 ; safe_goal(Goal0, Module, Goal) ),
    maplist(bound(Bindings), Names, Row),
    ( Distinct == true -> Run = distinct(Row, Goal) ; Run = Goal ),
    Count = count(0),
    call_with_inference_limit(emit_answers(Run, Row, Answers, Count, Out), Inferences, Result),
    ( Result == inference_limit_exceeded -> Kind = limit, Message = inferences
    ; arg(1, Count, N), N > Answers      -> Kind = truncated, Message = ''
    ;                                       Kind = done, Message = ''
    ).

goal_term(Text, Module, Goal, Bindings) :-
    string_concat(Text, "\n.", Ended),
    setup_call_cleanup(
        open_string(Ended, In),
        ( read_term(In, Goal, [variable_names(Bindings), module(Module), double_quotes(atom), syntax_errors(error)]),
          read_term(In, Rest, [module(Module), syntax_errors(error)]) ),
        close(In)),
    ( Goal == end_of_file -> throw(error(syntax_error(empty_goal), _)) ; true ),
    ( Rest == end_of_file -> true ; throw(error(syntax_error(more_than_one_goal), _)) ).

bound(Bindings, Name, Value) :- ( memberchk(Name = Value, Bindings) -> true ; true ).

emit_answers(Goal, Row, Answers, Count, Out) :-
    (   call(Goal),
        arg(1, Count, N0), N is N0 + 1, nb_setarg(1, Count, N),
        ( N > Answers -> ! ; emit_row(Out, Row), fail )
    ;   true
    ).

% The end mark of a goal that raised an error.
error_end(refused(Predicate), refused, Message) :- !, term_to_atom(Predicate, Message).
error_end(error(resource_error(Resource), _), limit, memory) :- memory(Resource), !.
error_end(error(type_error(evaluable, Text/0), _), not_a_number, Text) :- !.
error_end(error(Formal, Context), Kind, Message) :-
    wrong_argument(Formal, Context, Name, Expected, Value), !,
    functor(Formal, Kind, _),
    format(string(Message), '~w\t~w\t~q', [Name, Expected, Value]).
error_end(error(Formal, Context), Kind, Message) :- !,
    ( compound(Formal) -> functor(Formal, Kind, _) ; Kind = Formal ),
    catch(( '$messages':translate_message(error(Formal, Context), Lines, []), message_text(Lines, Message) ),
          _, Message = 'no message').
error_end(_, thrown, 'The goal threw a term that is not an error.').

% The name of the predicate that raised the error, what it expects, and the value at fault; an unknown name is empty.
wrong_argument(type_error(Expected, Value), Context, Name, Expected, Value) :- raised_by(Context, Name).
wrong_argument(domain_error(Expected, Value), Context, Name, Expected, Value) :- raised_by(Context, Name).
wrong_argument(existence_error(matching_rule, Head), _, Name, list, List) :-
    strip_module(Head, lists, Plain),
    functor(Plain, Name, _),
    arg(1, Plain, List).

raised_by(context(Predicate, _), Name) :- nonvar(Predicate), !, strip_module(Predicate, _, Name/_).
raised_by(_, '').

memory(Resource) :- memberchk(Resource, [stack_overflow, memory, no_memory, program_space, private_table_space,
                                         shared_table_space, table_space, stack, c_stack]).

% --- demand: the questions that a goal needs answered ----------------------------------------------------------------

%!  demanded(+Text, -Name, -Pattern)
%   Run the untrusted goal Text to its end, then enumerate the questions whose answers it needed: a predicate's name, and
%   free or bound(Value) for each argument.
demanded(Text, Name, Pattern) :-
    nb_getval(hapax_module, Module),
    goal_term(Text, Module, Goal0, _),
    safe_goal(Goal0, Module, Goal),
    trie_new(Missing),
    nb_setval(hapax_missing, Missing),
    forall(Goal, true),
    trie_gen(Missing, Name-Pattern).

%!  need(+Name, +Arguments, ?Fact) is failure.
%   Record the question that Name(Arguments) needs, unless it was asked or is settled. Fact is the same atom among the
%   stored facts. It fails so that the next clause of the predicate, which looks the facts up, is tried.
need(Name, Arguments, Fact) :-
    nb_getval(hapax_module, Module),
    \+ misfit(Name, Arguments, Module),
    note(Name, Arguments, Fact, Module),
    fail.

% No question about a value that was accepted, but under no sub- or supertype of the argument's: Prague is not a landmark.
misfit(Name, Arguments, Module) :-
    length(Arguments, Arity),
    nth1(Position, Arguments, Value),
    nonvar(Value),
    Module:hapax_argument(Name/Arity, Position, Type),
    Module:hapax_accepted(Value, _),
    \+ Module:hapax_instance(Value, Type),
    \+ ( Module:hapax_above(Type, Wider), Module:hapax_accepted(Value, Wider) ),
    !.

note(Name, Arguments, Fact, Module) :-
    ground(Arguments), !,
    \+ Module:Fact,
    \+ Module:hapax_refuted(Name, Arguments),
    \+ answered_otherwise(Name, Arguments, Fact, Module),
    missing(Name, Arguments).
note(Name, Arguments, Fact, Module) :-
    maplist(pattern, Arguments, Pattern),
    length(Arguments, Arity),
    (   \+ Module:hapax_asked(Name, Pattern)
    ->  \+ ( Module:hapax_functional(Name/Arity), append(Given, [free], Pattern), \+ memberchk(free, Given), Module:Fact ),
        missing(Name, Arguments)
    ;   append(_, [free|Later], Pattern), memberchk(free, Later)
    ->  nth1(Position, Pattern, free), !,        % the first free argument was asked for: continue with each of its values
        nth1(Position, Arguments, Value),
        Module:hapax_argument(Name/Arity, Position, Type),
        forall(Module:hapax_instance(Value, Type), ignore(note(Name, Arguments, Fact, Module)))
    ).

% A functional predicate that has a value for these arguments has no other value.
answered_otherwise(Name, Arguments, Fact, Module) :-
    length(Arguments, Arity),
    Module:hapax_functional(Name/Arity),
    copy_term(Fact, Other),
    setarg(Arity, Other, _),
    Module:Other, !.

missing(Name, Arguments) :-
    maplist(pattern, Arguments, Pattern),
    catch(nb_getval(hapax_missing, Missing), _, fail),
    ignore(trie_insert(Missing, Name-Pattern)).

pattern(Argument, free) :- var(Argument), !.
pattern(Argument, bound(Argument)).

% --- facts that the program left out ---------------------------------------------------------------------------------

%!  open_feed(+Calls, +Facts)
%   Open the files to which calls for facts are written and from which the facts are read. Without bom(false) Prolog would
%   wait for the first facts.
open_feed(Calls, Facts) :-
    open(Calls, write, Out, [encoding(utf8), buffer(full), newline(posix)]),
    open(Facts, read, In, [encoding(utf8), newline(posix), bom(false)]),
    trie_new(Fetched),
    nb_setval(hapax_feed, feed(Out, In, Fetched)).

%!  fetch(+Name, +Arguments)
%   Assert the facts that can match the call Name(Arguments), once for all calls that differ in free arguments only.
fetch(Name, Arguments) :-
    nb_getval(hapax_feed, feed(Out, In, Fetched)),
    maplist(pattern, Arguments, Pattern),
    (   fetched(Pattern, Name, Fetched)
    ->  true
    ;   emit_row(Out, [Name|Arguments]), put_char(Out, '.'), flush_output(Out),
        assert_facts(In, Last),
        ( Last == all -> maplist(freed, Pattern, Known) ; Known = Pattern ),
        compound_name_arguments(Key, Name, Known),
        ignore(trie_insert(Fetched, Key, true))
    ).

% The pattern itself, a pattern with only one of its bound arguments, or the whole predicate was fetched.
fetched(Pattern, Name, Fetched) :- was_fetched(Pattern, Name, Fetched), !.
fetched(Pattern, Name, Fetched) :- memberchk(bound(_), Pattern), only(Pattern, One), was_fetched(One, Name, Fetched), !.

%!  only(+Pattern, -One)
%   One has at most one of the bound arguments of Pattern.
only([], []).
only([bound(Value)|Pattern], [bound(Value)|Free]) :- maplist(freed, Pattern, Free).
only([_|Pattern], [free|One]) :- only(Pattern, One).

freed(_, free).

was_fetched(Pattern, Name, Fetched) :- compound_name_arguments(Key, Name, Pattern), trie_lookup(Fetched, Key, _).

%!  assert_facts(+In, -Last)
%   Last is `all` if all facts of the predicate came, or else `end`.
assert_facts(In, Last) :-
    nb_getval(hapax_module, Module),
    repeat,
    read_term(In, Facts, [module(Module)]),
    (   is_list(Facts)
    ->  forall(member(Fact, Facts), assertz(Module:Fact)), fail
    ;   memberchk(Facts, [all, end])
    ->  !, Last = Facts
    ;   throw(error(system_error(no_facts), _))
    ).

% --- writing ---------------------------------------------------------------------------------------------------------

out(user_output) :-
    set_stream(user_output, encoding(utf8)),
    set_stream(user_output, buffer(full)),
    set_stream(user_output, newline(posix)),
    set_stream(user_output, representation_errors(error)).

emit_row(Out, Row) :- put_char(Out, r), length(Row, N), format(Out, "l~d:", [N]), emit_list(Row, Out).

emit_end(Out, Kind, Message) :- put_char(Out, e), emit(Kind, Out), emit(Message, Out), flush_output(Out).

emit_list([], _).
emit_list([Cell|Cells], Out) :- emit(Cell, Out), emit_list(Cells, Out).

emit(Term, Out) :- var(Term), !, term_to_atom(Term, Name), emit_text(v, Name, Out).
emit(Term, Out) :- atom(Term), !, emit_text(a, Term, Out).
emit(Term, Out) :- integer(Term), !, format(Out, "i~w;", [Term]).
emit(Term, Out) :- float(Term), !, format(Out, "f~w;", [Term]).
emit(Term, Out) :- rational(Term, N, D), !, format(Out, "q~w/~w;", [N, D]).
emit(Term, Out) :- string(Term), !, emit_text(s, Term, Out).
emit([], Out) :- !, write(Out, 'l0:').
emit(Term, Out) :- is_list(Term), !, length(Term, N), format(Out, "l~d:", [N]), emit_list(Term, Out).
emit(Term, Out) :- compound(Term), acyclic_term(Term), !,
    compound_name_arguments(Term, Name, Arguments),
    length(Arguments, N),
    format(Out, "c~d:", [N]), emit(Name, Out), emit_list(Arguments, Out).
emit(_, Out) :- emit_text(s, "?", Out).

emit_text(Tag, Text, Out) :- string_length(Text, N), format(Out, "~a~d:~w", [Tag, N, Text]).
