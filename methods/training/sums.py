"""Word problems of arithmetic from templates, with names, things and numbers drawn anew each time."""

from random import Random

__all__ = ["word_problem"]


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.replace("\n", " ").split(";") if entry.strip())


_NAMES = _list("""
Amara; Ben; Carlos; Daniela; Elif; Farid; Grace; Hana; Ivan; Jamila; Kofi; Lucia; Mateo; Nina; Omar; Priya; Quentin;
Rosa; Samir; Tara; Uma; Viktor; Wendy; Xin; Yara; Zane; Aisha; Bruno; Chen; Dora; Emeka; Fiona; Gustav; Helga;
Isaac; Joy; Karl; Leila; Marco; Noor
""")
_THINGS = _list("""
apples; marbles; stickers; pencils; books; cookies; stamps; shells; oranges; postcards; beads; coins; eggs; muffins;
seeds; buttons; ribbons; balloons; toy cars; trading cards; tomatoes; candles; roses; photos; bricks
""")
_GOODS = _list("""
notebook; sandwich; ticket; scarf; lamp; mug; T-shirt; puzzle; plant; poster; cap; backpack; pizza; umbrella; bottle
of juice; pair of socks; chess set; water bottle; cinema ticket; basket
""")
_WORKERS = _list("""
baker; carpenter; painter; gardener; tailor; mechanic; farmer; printer; potter; programmer
""")
_VEHICLES = _list("""
train; bus; cyclist; ferry; truck; car; delivery van; tram
""")
_PLACES = _list("""
farm; school; library; hotel; factory; theater; museum; camp; bakery; stadium
""")

_TEMPLATES = _list("""
{a} has {n} {thing}. {b} has {k} times as many. How many {thing} do they have together?;
{a} bought {k} {goods} for ${p} each and paid with a ${big} bill. How much change did {a} get?;
A {vehicle} travels {speed} kilometers per hour for {k} hours and then {speed2} kilometers per hour for {j} hours.
How far does it travel in all?;
{a} reads {n} pages on Monday and {m} pages more on Tuesday. On Wednesday {a} reads half as many pages as on
Tuesday. How many pages does {a} read in the three days?;
A {place} has {k} rows of {n} chairs. {m} chairs are taken. How many chairs are free?;
{a} earns ${p} per hour and works {k} hours a day, {j} days a week. How much does {a} earn in {w} weeks?;
There are {big} {thing} in a box. {a} takes {n}, {b} takes {m}, and the rest is shared equally by {k} children. How
many {thing} does each child get?;
A {goods} costs ${price}. In a sale it is {percent} percent cheaper. What does it cost in the sale?;
{a} is {k} years older than {b}. In {j} years the sum of their ages will be {big}. How old is {b} today?;
A {worker} needs {k} hours for one order. With a helper it takes {j} hours less. How many orders can the two finish
in {w} days of {h} hours?;
{a} fills {k} bags with {n} {thing} each and has {m} {thing} left over. How many {thing} were there at the
beginning?;
A recipe for {k} people needs {g} grams of flour. How many grams of flour does {a} need for {j} people?;
The perimeter of a rectangular garden is {even} meters. It is {k} meters longer than it is wide. What is its area?;
{a} runs {k} kilometers every day. How many weeks does {a} need to run {far} kilometers?;
A tank holds {g} liters. One pipe fills {n} liters per minute, a leak loses {k} liters per minute. How long does it
take to fill the empty tank?;
{a} and {b} share ${g}. {a} gets ${m} more than {b}. How much does each of them get?;
Each of the {k} shelves in the {place} holds {n} books. {percent} percent of the books are lent out. How many books
are on the shelves?;
{a} planted {n} seeds. {percent} percent of them sprouted, but {k} plants were eaten by snails. How many plants are
left?;
Two numbers add up to {big}. One of them is {k} times the other. What are the numbers?;
A {vehicle} leaves at {hour}:{minute} and arrives {k} hours and {j5} minutes later. When does it arrive?;
{a} has {n} coins, some worth 5 cents and some worth 10 cents. Together they are worth {cents} cents. How many of
each are there?;
A class of {big} students goes to a {place}. A ticket costs ${k} for a student, and {j} teachers pay ${p} each. What
does the visit cost?;
{a} saves ${n} in the first month and ${k} more each month than in the month before. How much has {a} saved after
{j} months?;
{a} cut a rope of {g} centimeters into pieces of {n} centimeters. How many pieces are there and how long is the
rest?;
On a {place} there are chickens and rabbits with {heads} heads and {legs} legs. How many rabbits are there?;
{a} drinks {k} glasses of water a day. A glass holds {ml} milliliters. How many liters does {a} drink in {w} weeks?;
The price of a {goods} rose from ${p} to ${price}. By how many percent did it rise?;
{a} answered {n} of {big} questions correctly. How many percent is that?;
{a}, {b} and {c} collected {thing}. {a} collected {n}, {b} twice as many, and {c} {m} fewer than {b}. How many did
they collect in total?;
{a} walks {k} blocks to the {place} and back every day except Sunday. How many blocks does {a} walk in {w} weeks?;
A machine makes {n} {thing} in {j} minutes. How many {thing} does it make in {h} hours?;
{a} spends {percent} percent of a salary of ${salary} on rent and ${g} on food. How much is left?;
What is {n} times {m}, minus {big}?;
Solve for x: {k}x + {n} = {big}. Show each step.;
A bag contains {k} red, {j} blue and {w} green marbles. What is the probability of drawing a blue one?;
The average of three numbers is {n}. Two of them are {m} and {k}. What is the third?;
{a} borrowed ${salary} at {k} percent simple interest per year. How much interest is due after {j} years?;
A square has an area of {square} square meters. How long is the fence around it?;
{a} had {big} {thing}. After giving {k} {thing} to each of {j} friends, {a} bought {n} more. How many {thing} does
{a} have now?
""")


def word_problem(random: Random) -> str:
    """Return one problem; the numbers need not come out even."""
    a, b, c = random.sample(_NAMES, 3)
    rabbits, chickens = random.randint(3, 20), random.randint(3, 20)
    fives, tens = random.randint(2, 12), random.randint(2, 12)
    return random.choice(_TEMPLATES).format(
        a=a,
        b=b,
        c=c,
        thing=random.choice(_THINGS),
        goods=random.choice(_GOODS),
        worker=random.choice(_WORKERS),
        vehicle=random.choice(_VEHICLES),
        place=random.choice(_PLACES),
        n=random.randint(6, 48),
        m=random.randint(3, 30),
        k=random.randint(2, 9),
        j=random.randint(2, 9),
        w=random.randint(2, 8),
        h=random.randint(3, 9),
        p=random.randint(3, 25),
        big=random.randint(6, 20) * 10,
        price=random.randint(26, 90),
        percent=random.choice((5, 10, 15, 20, 25, 30, 40, 50, 60, 75)),
        speed=random.randint(4, 12) * 10,
        speed2=random.randint(3, 11) * 10,
        even=random.randint(12, 60) * 2,
        far=random.randint(5, 30) * 7,
        g=random.randint(3, 24) * 50,
        hour=random.randint(6, 20),
        minute=random.randint(10, 55),
        j5=random.randint(1, 11) * 5,
        cents=fives * 5 + tens * 10,
        heads=rabbits + chickens,
        legs=4 * rabbits + 2 * chickens,
        ml=random.choice((150, 200, 250, 300)),
        salary=random.randint(8, 40) * 100,
        square=random.randint(3, 15) ** 2,
    )
