% The Prolog part of the worker process: loads a program, runs a goal, and writes its answers in bulk.
%
% The output is a prefix code that needs no escaping, because every text is preceded by its length in characters:
%   a<n>:text  an atom      s<n>:text  a string       i<digits>;  an integer     f<digits>;  a float
%   q<n>/<d>;  a rational   v<n>:name  a free variable c<n>:+n+1 cells: name, arguments   l<n>:+n cells: a list
%   r  starts a row         e  starts the end mark: two atoms, kind and message
% Without the end mark the goal's process died, and its output is discarded.

:- module(hapax_host, [ready/0, limit_stacks/1, load_program/3, answer/4]).

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
