"""`hapax serve`: who is answered, what a busy server says, and what a strange address gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from cli_fixture import run
from page_server import Served, serving

PLACES = ("/", "/facts", "/facts?format=json", "/ask?goal=likes(X,tea)", "/style.css", "/script.js", "/nothing")
NUMBERS = ("9" * 5000, "-1", "0", "1e400", "\u0663", "nan", "%00")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base of one fact."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "facts.csv").write_text("likes,ann,tea\n", "utf-8")
    (folder / "likes.rules").write_text("given likes(Person, Drink)\n", "utf-8")
    run("import", folder / "facts.csv", "--rules", folder / "likes.rules", "--db", folder / "kb.db")
    return folder / "kb.db"


@pytest.fixture(scope="module")
def served(database: Path) -> Iterator[Served]:
    """A server that stores votes."""
    with serving(database, "--judge") as served:
        yield served


def test_the_printed_link_logs_in(served: Served) -> None:
    """It sets a cookie that no script reads and no other site sends, and leads to the same page without the token."""
    answer = served.ask_without_token(f"/facts?order=arguments&token={served.token}&page=1")
    cookie, *rules = answer.headers["Set-Cookie"].split("; ")

    assert (answer.status, answer.headers["Location"]) == (303, "/facts?order=arguments&page=1")
    assert {"httponly", "samesite=strict"} <= {rule.lower() for rule in rules}
    assert str(served.port) in cookie.partition("=")[0]
    for place in PLACES[:-1]:
        page = served.ask_without_token(place, Cookie=cookie)
        assert page.status == 200
        assert served.token not in page.text


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_shown_without_the_token(served: Served, place: str) -> None:
    """Every page, file and table is refused to others on the machine, too, with the way to log in."""
    wrong = f"{place}{'&' if '?' in place else '?'}token=wrong"
    for answer in (
        served.ask_without_token(place),
        served.ask_without_token(wrong),
        served.ask_without_token(place, Cookie=f"hapax-{served.port}=\xe9"),
        served.ask_without_token(place, "POST", Origin=f"http://127.0.0.1:{served.port}"),
    ):
        assert answer.status == 401
        assert "hapax serve" in answer.text
        assert "ann" not in answer.text


def test_a_token_holds_for_its_server_alone(served: Served, database: Path) -> None:
    """Another server of the same file has another token, and another cookie, so that both can be open."""
    with serving(database) as other:
        assert other.token != served.token
        assert served.ask("/", Authorization=f"Bearer {other.token}").status == 401
        cookies = "; ".join(f"hapax-{server.port}={server.token}" for server in (served, other))
        assert {server.ask_without_token("/", Cookie=cookies).status for server in (served, other)} == {200}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_gets_nothing(served: Served, site: str) -> None:
    """Requests of other sites and ports are refused, whatever they bring, except the printed link as a page."""
    for place in PLACES:
        for kind in ("image", "document", "iframe"):
            assert served.ask(place, Sec_Fetch_Site=site, Sec_Fetch_Dest=kind).status == 403
    link = f"/facts?token={served.token}"
    assert served.ask_without_token(link, Sec_Fetch_Site=site, Sec_Fetch_Dest="iframe").status == 403

    login = served.ask_without_token(link, Sec_Fetch_Site=site, Sec_Fetch_Dest="document")

    # A browser would not send the cookie while another site redirects it.
    assert (login.status, login.headers["Refresh"]) == (200, "0; url=/facts")
    assert served.token in login.headers["Set-Cookie"]


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://[", "http://127.0.0.1:1"])
def test_a_form_comes_from_the_own_pages(served: Served, origin: str) -> None:
    """A form with another origin, or none, is refused even with the token."""
    headers = {"Origin": origin} if origin else {}

    assert served.ask("/judge", "POST", "voter=eve&item=x&answer=yes", **headers).status == 403


def test_no_address_leaves_with_a_link(served: Served) -> None:
    """No other site learns the address of a page, which may have been opened with the token."""
    for answer in (served.ask("/"), served.ask_without_token("/"), served.ask_without_token(f"/?token={served.token}")):
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "testserver", "127.0.0.1.evil.example", "[::1", "", "localhost@evil"])
def test_a_server_of_this_machine_has_no_other_name(served: Served, host: str) -> None:
    """A name that somebody else can lead to this machine is refused, also with the token."""
    assert served.ask("/", Host=host).status == 400


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1", "[::1]:80", "127.1.2.3"])
def test_names_of_this_machine_are_answered(served: Served, host: str) -> None:
    """Its own addresses and `localhost` lead to it from no other place."""
    assert served.ask("/", Host=host).status == 200


@pytest.mark.parametrize("number", NUMBERS)
def test_a_strange_number_is_an_error_of_the_request(served: Served, number: str) -> None:
    """Huge, negative, foreign and broken numbers in any address are no fault of the server."""
    text = quote(number, safe="%")
    places = [f"/predicate/likes/{text}", f"/predicate/likes/{text}?format=csv", f"/predicate/{text}/2"]
    places += [f"/{page}/{text}" for page in ("statement", "rule", "run")]
    places += [f"/entity?name={text}", f"/facts?predicate=likes/{text}", f"/search?words={text}", f"/why?atom={text}"]
    places += [f"/ask?goal=likes(X,{text})", f"/judge?voter=ann&skip={text}", f"/judge?voter={text}"]
    for table in ("statements", "facts", "claims"):
        places += [f"/{table}?{name}={text}" for name in ("page", "order", "format", "words", "about")]
        places += [f"/{table}?{name}={text}" for name in ("least", "most", "rare", "common", "judge", "source", "end")]
        places += [f"/{table}?page={text}&format=json", f"/{table}?page={text}&order=rule"]
    for place in places:
        assert served.ask(place).status in (200, 303, 400, 404, 503), place
    if number != "0":
        assert served.ask(f"/predicate/likes/{text}").status == 404
        assert served.ask(f"/facts?page={text}").status == 400
