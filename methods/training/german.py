"""German sentences by rule, for prompts that ask for a translation: a small grammar with case and gender.

The sentences have to be grammatical and unlike each other; what they say need not be true.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

__all__ = ["german_text"]


@dataclass(frozen=True, slots=True)
class _Noun:
    word: str
    gender: str
    """m, f or n."""


def _nouns(text: str) -> tuple[_Noun, ...]:
    """Read `der Zug, die Karte`: the article gives the gender."""
    genders = {"der": "m", "die": "f", "das": "n"}
    pairs = (entry.strip().split(maxsplit=1) for entry in text.replace("\n", " ").split(",") if entry.strip())
    return tuple(_Noun(word, genders[article]) for article, word in pairs)


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.replace("\n", " ").split(";") if entry.strip())


_PEOPLE = _nouns("""
die Lehrerin, der Lehrer, die Ärztin, der Arzt, die Bürgermeisterin, der Bürgermeister, die Forscherin, der
Forscher, die Ministerin, der Minister, die Trainerin, der Trainer, der Bäcker, die Bäuerin, der Verkäufer, die
Verkäuferin, die Nachbarin, der Gärtner, der Richter, die Richterin, der Schriftsteller, die Malerin, der
Schauspieler, die Sängerin, der Fahrer, die Pilotin, der Ingenieur, die Chefin, der Direktor, die Schülerin, der
Schüler, die Mannschaft, die Firma, der Verein, die Universität, die Polizei, die Gemeinde, die Regierung, das
Unternehmen, das Museum, der Verlag, die Bibliothek, die Stadt
""")
_THINGS = _nouns("""
der Brief, die Karte, das Buch, der Bericht, der Vertrag, das Bild, die Brücke, der Garten, das Rathaus, die
Maschine, der Schlüssel, das Fahrrad, die Tasche, der Koffer, die Zeitung, das Gerät, der Plan, die Rechnung, das
Dach, der Turm, die Uhr, das Fenster, die Küche, der Tisch, das Projekt, die Ausstellung, der Film, das Lied, die
Sammlung, das Denkmal, der Brunnen, die Werkstatt, der Computer, das Programm, die Lösung, der Vorschlag, das
Angebot, die Entscheidung, der Kuchen, das Konzert
""")
_PLACES_OF_WORK = _nouns("""
der Bahnhof, die Schule, das Krankenhaus, das Büro, die Fabrik, der Hafen, der Flughafen, das Theater, die Kirche,
das Labor, der Markt, die Werkstatt, das Dorf, der Park, die Altstadt, das Stadion, das Hotel, der Wald, das
Schloss, die Bäckerei
""")
_TOWNS = _list("""
Leipzig; Köln; Hamburg; München; Dresden; Bremen; Stuttgart; Rostock; Erfurt; Freiburg; Kassel; Münster; Lübeck;
Wien; Graz; Salzburg; Zürich; Basel; Bern; Prag; Paris; London; Rom; Madrid; Warschau; Kopenhagen; Athen; Lissabon
""")
_COUNTRIES = _list("""
Deutschland; Österreich; Polen; Frankreich; Italien; Spanien; Norwegen; Schweden; Japan; Kanada; Brasilien; Indien;
Australien; Ägypten; Griechenland; Portugal; Dänemark; Mexiko; Südafrika; Irland
""")
_NAMES = _list("""
Anna; Jonas; Frau Schneider; Herr Weber; Lena; Tobias; Frau Yılmaz; Herr Kowalski; Clara; Felix; Doktor Brandt;
Miriam; Herr Nguyen; Sofia; Professorin Keller; Max; Frau Lindner; Emil; Ida; Herr Fuchs
""")
_ADJECTIVES = _list("""
neu; alt; klein; groß; schön; wichtig; berühmt; lang; kurz; schwer; günstig; modern; historisch; ungewöhnlich; blau;
rot; grün; schmal; breit; leise; einfach; kaputt; wertvoll; interessant; lokal
""")
_QUALITIES = ("neu", "jung", "berühmt", "erfahren", "ehemalig", "zuständig", "bekannt")
_REPORTS = _nouns("der Bericht, die Studie, die Umfrage, das Gutachten")
_TIMES = _list("""
gestern; heute; am Montag; am Freitag; am Wochenende; vor zwei Wochen; im vergangenen Jahr; im Sommer; im Herbst;
kurz vor Mitternacht; am frühen Morgen; nach dem Essen; während der Pause; im März; im November; vor drei Tagen;
nach langer Diskussion; zum ersten Mal
""")
_ALWAYS = _list("""
jeden Morgen; oft; manchmal; seit drei Jahren; fast immer; nur selten; am Abend; im Winter; wie immer; zweimal in
der Woche
""")
_PAST = _list("""
öffnete; verkaufte; kaufte; suchte; zeigte; beschrieb; reparierte; besuchte; plante; prüfte; lobte; kritisierte;
fotografierte; bemalte; erwähnte; verlor; fand; vergaß
""")
_PARTICIPLES = _list("""
gefunden; verkauft; gekauft; gesucht; gezeigt; beschrieben; repariert; geplant; geprüft; gelobt; vergessen; gesehen;
bestellt; verloren; gebaut; bezahlt; gereinigt; abgeholt; mitgebracht; fotografiert
""")
_INFINITIVES = _list("""
reparieren; verkaufen; kaufen; sehen; prüfen; planen; bezahlen; abholen; mitbringen; reinigen; finden; bestellen;
ersetzen; zeigen
""")
_AMOUNTS = _nouns("""
die Zahl der Besucher, der Preis für Strom, die Zahl der Unfälle, der Umsatz, die Nachfrage nach Wohnungen, der
Verbrauch von Wasser, die Zahl der Studierenden, der Anteil der Radfahrer, die Produktion von Papier, der Export von
Maschinen, die Zahl der Arbeitslosen, der Gewinn der Firma, die Temperatur des Sees, die Länge der Wartezeit
""")
_WEATHER = _list("""
regnete es stark; schien die Sonne; war es ungewöhnlich kalt; lag dichter Nebel über dem Fluss; fielen mehr als
zwanzig Zentimeter Schnee; wehte ein kräftiger Wind; gab es ein kurzes Gewitter; blieb es trocken; waren die Straßen
glatt; stieg die Temperatur auf dreißig Grad; wurde es schnell dunkel; zogen dunkle Wolken auf
""")
_REASONS = _list("""
das Wetter schlecht war; der Zug Verspätung hatte; niemand die Antwort kannte; die Kosten zu hoch waren; der Strom
ausgefallen war; die Straße gesperrt war; es zu wenig Personal gab; viele Menschen daran interessiert waren; die
Arbeit noch nicht fertig war; das Geld fehlte; der Vertrag bald endet; die Gäste früher kamen als erwartet; der
Aufzug kaputt war; alle müde waren
""")
_CLAIMS = _list("""
die Arbeiten im Mai beginnen; niemand verletzt wurde; die Ergebnisse überraschend sind; mehr Geld für Schulen nötig
ist; die Verhandlungen gescheitert sind; das Wasser sauber genug zum Baden ist; die neue Linie pünktlich fertig
wird; der Fehler gefunden wurde; die Preise weiter steigen werden; es keine einfache Lösung gibt; die Zahl der Vögel
zurückgeht; der Impfstoff gut vertragen wird; das Gebäude unter Denkmalschutz steht; die Daten sorgfältig geprüft
wurden; der Mond einst viel näher war; Pflanzen auf Geräusche reagieren
""")
_SAID = _list("""
erklärte; sagte; betonte; berichtete; bestätigte; versprach; schrieb; glaubte
""")
_FACTS = _list("""
Bienen können Farben unterscheiden; Wasser dehnt sich beim Gefrieren aus; der Gletscher verliert jedes Jahr mehrere
Meter; das Herz eines Wals schlägt sehr langsam; Licht braucht etwa acht Minuten von der Sonne zur Erde; viele
Zugvögel orientieren sich am Magnetfeld; die Messung dauerte länger als geplant; die Probe enthielt Spuren von
Eisen; der Versuch wurde dreimal wiederholt; alte Bäume speichern besonders viel Kohlenstoff; Kinder lernen neue
Sprachen leichter als Erwachsene; regelmäßige Bewegung senkt das Risiko vieler Krankheiten; der Motor verbraucht
weniger Energie als sein Vorgänger; das Programm erkennt Fehler automatisch; Erdbeben lassen sich nicht genau
vorhersagen; Salz senkt den Gefrierpunkt des Wassers
""")
_SERVICE = _list("""
Entschuldigung, wie komme ich am schnellsten {zu}?; Könnten Sie mir bitte sagen, wann der nächste Bus nach {town}
fährt?; Haben Sie noch ein Zimmer für zwei Personen frei?; Ich hätte gern einen Tisch für {number} Personen am
Fenster.; Wo kann ich Fahrkarten nach {town} kaufen?; Der Eintritt kostet {number} Euro, Kinder zahlen die Hälfte.;
Bitte schicken Sie uns {acc} bis Freitag zurück.; Wir möchten uns für die Verspätung entschuldigen.; Die Bestellung
wird in {number} Tagen geliefert.; Vielen Dank für Ihre schnelle Antwort.; Leider ist {nom} im Moment nicht
verfügbar.; Können wir den Termin auf nächste Woche verschieben?; Ich habe {acc} im Zug liegen lassen.; Das
Frühstück gibt es von sieben bis zehn Uhr.; Bei Fragen können Sie uns jederzeit anrufen.; Der Zug nach {town} fährt
heute von Gleis {number}.
""")
_BESIDES = ("und liest gern", "und lernt Spanisch", "und fährt mit dem Rad", "und spart für eine Reise")
_MODALS = (
    ("Wir", "müssen"),
    ("Ich", "möchte"),
    ("Sie", "wollen"),
    ("Ihr", "solltet"),
    ("Man", "kann"),
    ("Niemand", "darf"),
    ("Meine Eltern", "wollen"),
)
_MODALS_MORE = (
    ("Die Kinder", "dürfen"),
    ("Viele Menschen", "können"),
    ("Der Mechaniker", "soll"),
    ("Wir", "konnten"),
    ("Ich", "musste"),
)

_ARTICLES = {
    "the": {"m": ("der", "den", "dem"), "f": ("die", "die", "der"), "n": ("das", "das", "dem")},
    "a": {"m": ("ein", "einen", "einem"), "f": ("eine", "eine", "einer"), "n": ("ein", "ein", "einem")},
}
_ENDINGS = {
    "the": {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en")},
    "a": {"m": ("er", "en", "en"), "f": ("e", "e", "en"), "n": ("es", "es", "en")},
}
_CASES = {"nom": 0, "acc": 1, "dat": 2}


def german_text(random: Random) -> str:
    """Return one to three sentences."""
    count = random.choice((1, 1, 1, 2, 2, 3))
    return " ".join(random.choice(_SENTENCES)(random) for _ in range(count))


def _phrase(
    random: Random,
    nouns: Sequence[_Noun],
    case: str,
    *,
    article: str = "",
    adjective: float = 0.4,
    adjectives: Sequence[str] = _ADJECTIVES,
) -> str:
    """Return article, perhaps an adjective, and noun in this case."""
    noun = random.choice(nouns)
    kind = article or random.choice(("the", "a"))
    words = [_ARTICLES[kind][noun.gender][_CASES[case]]]
    if random.random() < adjective:
        words.append(random.choice(adjectives) + _ENDINGS[kind][noun.gender][_CASES[case]])
    return " ".join([*words, noun.word])


def _subject(random: Random) -> str:
    if random.random() < 0.3:
        return random.choice(_NAMES)
    return _phrase(random, _PEOPLE, "nom", article="the", adjective=0.2, adjectives=_QUALITIES)


def _place(random: Random) -> str:
    if random.random() < 0.5:
        return f"in {random.choice(_TOWNS if random.random() < 0.7 else _COUNTRIES)}"
    noun = random.choice(_PLACES_OF_WORK)
    return {"m": "in einem", "n": "in einem", "f": "in einer"}[noun.gender] + f" {noun.word}"


def _first_upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _told(random: Random) -> str:
    """Time, verb, subject, object, place."""
    parts = [random.choice(_TIMES), random.choice(_PAST), _subject(random), _phrase(random, _THINGS, "acc")]
    if random.random() < 0.6:
        parts.append(_place(random))
    return _first_upper(" ".join(parts)) + "."


def _perfect(random: Random) -> str:
    middle = [random.choice(_TIMES), _phrase(random, _THINGS, "acc")]
    if random.random() < 0.4:
        middle.append(_place(random))
    end = f", weil {random.choice(_REASONS)}" if random.random() < 0.3 else ""
    return _first_upper(f"{_subject(random)} hat {' '.join(middle)} {random.choice(_PARTICIPLES)}{end}.")


def _modal(random: Random) -> str:
    subject, verb = random.choice(_MODALS + _MODALS_MORE)
    negated = "nicht " if random.random() < 0.25 and subject != "Niemand" else ""
    thing = _phrase(random, _THINGS, "acc", article="the")
    end = f", obwohl {random.choice(_REASONS)}" if random.random() < 0.35 else ""
    return f"{subject} {verb} {thing} {negated}{random.choice(_INFINITIVES)}{end}."


def _weather(random: Random) -> str:
    begin = f"In {random.choice(_TOWNS)} " if random.random() < 0.5 else _first_upper(random.choice(_TIMES[:12])) + " "
    end = f", deshalb blieb {_subject(random)} zu Hause" if random.random() < 0.3 else ""
    return begin + random.choice(_WEATHER) + end + "."


def _figures(random: Random) -> str:
    amount = random.choice(_AMOUNTS)
    article = _ARTICLES["the"][amount.gender][0]
    verb = random.choice(("stieg", "sank", "wuchs", "fiel"))
    number = random.choice(("zwei", "drei", "fünf", "acht", "zehn", "zwölf", "15", "20", "37", "4,5", "0,8"))
    begin = f"Laut {_phrase(random, _REPORTS, 'dat', article='a', adjectives=('neu', 'unabhängig', 'lang'))}"
    if random.random() < 0.5:
        begin = f"Im Jahr {random.randint(1950, 2023)}"
    return f"{begin} {verb} {article} {amount.word} in {random.choice(_COUNTRIES)} um {number} Prozent."


def _claim(random: Random) -> str:
    end = f" {random.choice(_TIMES)}" if random.random() < 0.4 else ""
    return _first_upper(f"{_subject(random)} {random.choice(_SAID)}{end}, dass {random.choice(_CLAIMS)}.")


def _fact(random: Random) -> str:
    fact = random.choice(_FACTS)
    if random.random() < 0.5:
        return _first_upper(fact) + "."
    study = f"Eine Studie aus {random.choice(_COUNTRIES)} ergab"
    begin = random.choice(("Forscher haben gezeigt", "Es ist bekannt", study, "Ich habe gelesen"))
    return f"{begin}: {_first_upper(fact)}."


def _service(random: Random) -> str:
    noun = random.choice(_PLACES_OF_WORK)
    return random.choice(_SERVICE).format(
        zu={"m": "zum", "n": "zum", "f": "zur"}[noun.gender] + f" {noun.word}",
        town=random.choice(_TOWNS),
        number=random.randint(2, 12),
        acc=_phrase(random, _THINGS, "acc", article="the"),
        nom=_phrase(random, _THINGS, "nom", article="the"),
    )


def _work(random: Random) -> str:
    subject = _subject(random)
    place = random.choice(_PLACES_OF_WORK)
    where = f"{'in der' if place.gender == 'f' else 'in einem'} {place.word}"
    return _first_upper(
        f"{subject} arbeitet {random.choice(_ALWAYS)} {where} "
        f"{random.choice((*_BESIDES, f'in {random.choice(_TOWNS)}'))}."
    )


def _travel(random: Random) -> str:
    begin, end = random.sample(_TOWNS, 2)
    thing = random.choice(("mit dem Zug", "mit dem Bus", "mit dem Schiff", "zu Fuß", "mit dem Auto", "mit dem Fahrrad"))
    hours = random.choice(
        ("zwei Stunden", "einen Tag", "fast eine Woche", "nur wenige Minuten länger als geplant", "länger als sonst")
    )
    reason = f", weil {random.choice(_REASONS)}" if random.random() < 0.4 else ""
    return f"Die Reise von {begin} nach {end} {thing} dauerte {hours}{reason}."


_SENTENCES: tuple[Callable[[Random], str], ...] = (
    _told,
    _told,
    _perfect,
    _perfect,
    _modal,
    _weather,
    _figures,
    _claim,
    _claim,
    _fact,
    _service,
    _service,
    _work,
    _travel,
)
