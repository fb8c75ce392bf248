"""What the prompts of `prompts.py` are about: subjects, people, places, works, tasks. Plain words, written for this."""

__all__ = [
    "CODE_TASKS",
    "CREATURES",
    "CURIOUS",
    "DEBATES",
    "ENTITIES",
    "EVENTS",
    "FOODS",
    "FORMS",
    "HUMANITIES",
    "LANGUAGES",
    "MOODS",
    "NEWS",
    "PAPERS",
    "ROLES",
    "SCENES",
    "SKILLS",
    "SPICES",
    "STEM",
    "WHAT_IF",
]


def _list(text: str) -> tuple[str, ...]:
    return tuple(entry for part in text.split("\n") for entry in (piece.strip() for piece in part.split(";")) if entry)


STEM = _list("""
photosynthesis; plate tectonics; the water cycle; vaccines; antibiotics resistance; black holes; neutron stars
the greenhouse effect; the nervous system; blood circulation; digestion; the immune system; hormones; sleep
muscle growth; DNA replication; protein synthesis; natural selection; symbiosis; food chains; coral reefs
bird migration; bee colonies; ant communication; whale songs; spider silk; fermentation; soil erosion; composting
crop rotation; pollination; seed dispersal; tides; ocean currents; hurricanes; tornadoes; lightning; rainbows
snowflakes; volcanoes; earthquakes; glaciers; deserts; rainforests; wetlands; caves; Newton's laws of motion
gravity; friction; buoyancy; pressure; sound waves; light refraction; lenses and mirrors; magnetism
static electricity; electric circuits; transformers in power grids; batteries; solar panels; wind turbines
hydropower; nuclear fission; nuclear fusion; steam engines; jet engines; the periodic table; acids and bases
chemical bonds; catalysts; oxidation and rust; combustion; polymers; alloys; crystals; water hardness; probability
prime numbers; fractions; percentages; the Pythagorean theorem; linear equations; quadratic equations
geometric series; graph theory; statistics and averages; binary numbers; sorting algorithms; encryption
the internet; databases; operating systems; machine learning; neural networks; computer viruses; data compression
satellites; telescopes; rockets; the Moon's phases; eclipses; comets; the seasons; time zones; calendars
the speed of light; thermodynamics; entropy; heat transfer; insulation; refrigerators; microwave ovens; bicycles
bridges; elevators; 3D printing; the ear; the eye; taste and smell; bones; skin; allergies; vitamins; dehydration
fever; the placebo effect; quantum superposition; relativity; dark matter; radioactivity; isotopes; lasers
fiber optics; radio; sonar; semiconductors
""")

HUMANITIES = _list("""
the Roman Republic; ancient Egypt; the Silk Road; the Black Death; the Renaissance; the Reformation
the French Revolution; the Industrial Revolution; the Age of Exploration; the Ottoman Empire; the Ming dynasty
feudal Japan; the Inca Empire; the Mali Empire; the Viking age; the Byzantine Empire; the abolition of slavery
women's suffrage; the Cold War; decolonization; the printing press; the League of Nations; the Great Depression
the Marshall Plan; democracy; federalism; separation of powers; constitutions; human rights; propaganda; censorship
nationalism; colonialism; immigration; inflation; supply and demand; monopolies; central banks; taxes
trade deficits; globalization; unemployment; income inequality; the gold standard; Stoicism; utilitarianism
existentialism; the social contract; free will; the trolley problem; Plato's cave; Confucian ethics
Buddhist philosophy; skepticism; Greek tragedy; the sonnet; magical realism; Gothic fiction; epic poetry; satire
fairy tales; oral tradition; the haiku; the short story; impressionism; cubism; baroque music; jazz; opera; flamenco
calligraphy; Gothic cathedrals; Bauhaus; street art; urbanization; the family in history; the history of money
the history of bread; tea culture; coffee houses; the Olympic Games; chess; public libraries; universities
language change; writing systems; dialects; translation; sign languages; naming customs; proverbs; etiquette
rites of passage; harvest festivals; the psychology of habits; peer pressure; memory; motivation; creativity
loneliness; happiness; procrastination; group decision making; cognitive bias
""")

NEWS = _list("""
a small town that opened a free repair workshop; a flood that closed the main bridge of a city
a school garden that feeds a neighborhood; a strike of bus drivers; the return of wolves to a valley
a museum that found a lost painting; a new railway line through the mountains
a storm that cut the power in three counties; a library that lends tools
a village that turned off its street lights; a record harvest of apples; a factory that moved to a four day week
the restoration of an old lighthouse; a marathon in heavy rain; a fire in a paper mill
a drought that threatens farmers; a ferry that ran aground in fog; an election decided by nine votes
a hospital that tests delivery drones; a new law on plastic packaging; a shortage of nurses
an orchestra of retired teachers; a teenager who built a seismograph; the closing of the last coal mine
a water main that burst downtown; a bakery that donates its bread; a festival canceled because of wasps
an old theater saved by its audience; a bridge that opens only for toads; a lake that turned green
a court case about a noisy rooster; a start-up that turns seaweed into paper; a village without mobile network
a city that plants ten thousand trees; an unusual meteor shower; a dispute about a wind park
a lost hiker found after four days; a train delayed by sheep; a new cable car; a rescued whale
a school that teaches chess; a town that voted to change its name
a bank robbery that failed because of a locked door; a chess tournament for robots; a cheese that won a prize
a swimming pool heated by a data center; a harbor closed by ice; rising rents in a university town
a plan to ban cars from the old town; a new vaccine trial; a survey about reading habits
a scientist who counts butterflies; the discovery of a Roman road under a parking lot
a football club owned by its fans; a radio station run by children; an island that sells its own stamps
a recall of faulty heaters; a volcano that woke after two centuries; a record number of visitors in a national park
a film crew that occupied a quiet street; a power plant that burns olive stones; a new bus for night workers
a merger of two airlines; a dispute over fishing rights; a drop in the price of wheat; an outage of a payment system
a shortage of bricks; a wave of bicycle thefts; a reform of school lunches; a tax on empty houses
a prize for the quietest street; a camera that counts salmon; a heat wave in the north; a snowstorm in April
an inventor who repairs hearing aids; a judge who writes poems; a bee keeper on a roof; a mayor who takes the tram
a nurse who ran across the country; a mathematician who solved an old puzzle
""")

EVENTS = _list("""
a company picnic; a wedding by the sea; a science fair; a charity run; a book club meeting; a house move
a job interview; a first day at work; a school reunion; a garden party; a product launch; a parent teacher meeting
a surprise birthday; a camping weekend; a museum visit; a cooking class; a town hall meeting; a farewell party
a city trip to Lisbon; a winter hike; a train journey across Canada; a visit to Kyoto; a road trip along the coast
a weekend in Prague; a stay on a farm; a sailing course; a trip to Iceland; a night at the opera; a street market
a pottery workshop
""")

FORMS = _list("""
a short story; a poem; a limerick; a letter to a friend; a formal email; a blog post; a product description
a speech of one minute; a diary entry; a news report; a dialogue; a persuasive essay; a review; a press release
an advertisement; a fable; a list of ten tips; a short scene of a play; a cover letter; a travel guide entry
a how-to guide; an apology; an invitation; a toast; a fairy tale; a haiku; a song; a LinkedIn post; a newsletter
an obituary for an object; a horoscope; a manual page
""")

MOODS = _list("""
cheerful; melancholic; formal; humorous; mysterious; calm; dramatic; ironic; friendly; concise; poetic
matter-of-fact; nostalgic; encouraging; scary; childlike
""")

SCENES = _list("""
an old clock that runs backwards; a lighthouse keeper and a gull; two strangers on a night train
a robot that learns to bake; a letter that arrives forty years late; a cat that runs a bookshop
a town where it never rains; the last tree on an island; a dragon afraid of heights; a piano nobody can tune
a map with a missing corner; a baker who finds a coin in the dough; a child who collects shadows
a detective without a memory; a garden on the Moon; a king who wants to be a gardener; a rainy afternoon
the first snow; a quiet harbor at dawn; a crowded kitchen; a broken umbrella; a lost dog in a big city
an empty theater; a mountain hut in a storm; a forgotten recipe; an unexpected guest; a secret door
the sound of the sea; an argument between a fork and a spoon; a long goodbye; a library at midnight
a market in Marrakesh; a violin and its maker; the day the internet stopped; a postman in the desert
a snail that wins a race; a teacher's last lesson; a bridge between two villages
""")

ROLES = _list("""
a pirate captain who is afraid of water; a medieval blacksmith; a museum guide; a patient doctor; a stern librarian
a travel agent; a chess coach; a football commentator; a detective from the 1920s; a gardener
a space explorer on Mars; a talking oak tree; a wise old turtle; a chef in a busy restaurant; a judge
a mayor of a small town; a stage magician; a history teacher; a mountain guide; a lighthouse keeper; Isaac Newton
Marie Curie; Leonardo da Vinci; Cleopatra; Marco Polo; Ada Lovelace; William Shakespeare; Florence Nightingale
Charles Darwin; Amelia Earhart; Mozart; Frida Kahlo; a vending machine with feelings; a stand-up comedian
a bored ghost; a job interviewer; a fitness trainer; a financial adviser; a landlord; a customer who wants a refund
an air traffic controller; a robot butler; a sailor on a whaling ship; a Roman senator; a samurai
a newspaper editor; a zookeeper; a wedding planner; a taxi driver in Rome; an alien visiting Earth
a kindergarten teacher; a bee
""")

CREATURES = _list("""
octopus; hedgehog; penguin; camel; bat; owl; salmon; elephant; chameleon; beaver; crocodile; dolphin; flamingo
giraffe; jellyfish; kangaroo; koala; lobster; mole; otter; panda; parrot; peacock; platypus; reindeer; seahorse
sloth; squid; tortoise; wolf
""")

ENTITIES = _list("""
the Eiffel Tower; the Great Wall of China; the Panama Canal; the Amazon River; Mount Kilimanjaro; the Sahara
Lake Baikal; the Great Barrier Reef; the Dead Sea; the Suez Canal; Venice; Istanbul; Nairobi; Buenos Aires
Reykjavik; Singapore; Toronto; Melbourne; Cape Town; Lima; Helsinki; Hanoi; Warsaw; Dublin; Athens; Vienna
Edinburgh; Havana; Brazil; Portugal; Norway; Mongolia; Ethiopia; New Zealand; Peru; Vietnam; Morocco; Hungary; Chile
Finland; Indonesia; Switzerland; Cuba; Greece; Kenya; Iceland; Galileo Galilei; Johannes Kepler; Nikola Tesla
Thomas Edison; Alexander Fleming; Louis Pasteur; Gregor Mendel; Rosalind Franklin; Alan Turing; Katherine Johnson
Niels Bohr; Michael Faraday; Julius Caesar; Genghis Khan; Joan of Arc; Napoleon Bonaparte; Queen Victoria
Abraham Lincoln; Mahatma Gandhi; Nelson Mandela; Simón Bolívar; Catherine the Great; Martin Luther
Eleanor Roosevelt; Jane Austen; Charles Dickens; Leo Tolstoy; Mark Twain; Mary Shelley; Homer; Dante
Miguel de Cervantes; Virginia Woolf; Franz Kafka; Gabriel García Márquez; Emily Dickinson; Johann Sebastian Bach
Ludwig van Beethoven; Vincent van Gogh; Claude Monet; Rembrandt; Pablo Picasso; Michelangelo; Frédéric Chopin
Antonio Vivaldi; Duke Ellington; Louis Armstrong; Johannes Vermeer; the violin; the compass; the telescope
the steam engine; the light bulb; the telephone; penicillin; paper; gunpowder; the wheel; the bicycle; the airplane
the computer mouse; the zipper; gold; iron; copper; helium; oxygen; carbon; mercury; salt; glass; rubber; cotton
silk; chocolate; coffee; tea; rice; potatoes; bananas; cinnamon; cheese; olive oil; honey; Mercury; Venus; Mars
Jupiter; Saturn; Neptune; the Sun; the Milky Way; Halley's comet; the International Space Station
the Hubble telescope; the Apollo program; the United Nations; the European Union; the Red Cross; NATO
the World Bank; UNESCO; the Nobel Prize; the Olympic Games; the World Cup; the Tour de France; Wimbledon
the Super Bowl; the Magna Carta; the Battle of Hastings; the Boston Tea Party; the fall of Constantinople
the Congress of Vienna; the Berlin Wall; the Treaty of Versailles; the Spanish Armada; the Gold Rush
the Moon landing
""")

CURIOUS = _list("""
why the sky is blue; why leaves change color in autumn; how planes stay in the air; why we yawn; how soap cleans
why ice floats; how GPS works; why bread rises; how a refrigerator cools; why the sea is salty
how vaccines are made; why cats purr; how bees make honey; why we dream; how tides form; how money is printed
why metal feels cold; how a touch screen works; why onions make us cry; how elevators are kept safe
how chocolate is made; why the Moon has phases; how birds find their way; why we have leap years
how paper is recycled; how glasses correct vision; why popcorn pops; how noise canceling works; why wood burns
how cheese gets its holes; how wells are dug; how stars die; why popular songs get stuck in our heads
how muscles grow; how a lock works; why mirrors swap left and right; how fish breathe; why spicy food burns
how a compass works; how clouds form
""")

CODE_TASKS = _list("""
reverses a string; checks whether a word is a palindrome; finds the second largest number in a list
counts the vowels in a sentence; merges two sorted lists; removes duplicates from a list while keeping the order
converts Celsius to Fahrenheit; checks whether a number is prime; computes the factorial of a number
returns the longest word of a sentence; finds all anagrams of a word in a list; rotates a list by k places
parses a CSV line with quoted fields; counts how often each word occurs in a file; validates an email address
generates a random password; converts Roman numerals to integers; converts a number to binary
finds the shortest path in a grid; implements a stack with push and pop; implements a queue with two stacks
performs binary search; sorts a list of dictionaries by a key; groups a list of words by first letter
computes the greatest common divisor; prints a multiplication table; checks whether brackets are balanced
flattens a nested list; finds the missing number from 1 to n; computes the moving average of a series
reads a JSON file and prints the keys; renames all files in a folder; downloads a web page and counts its links
simulates rolling two dice; draws a triangle of stars; plays tic-tac-toe; keeps a to-do list
computes compound interest; transposes a matrix; finds the intersection of two lists
checks whether a year is a leap year; formats a phone number; caches the results of another function
splits a bill among friends; inserts a node into a binary tree; reverses a linked list
finds the depth of a binary tree; encodes a text with the Caesar cipher; counts the words in a paragraph
finds the mode of a list; computes the distance between two points
""")

PAPERS = ("an invitation", "a checklist", "a short speech", "a schedule", "an email to the guests")

WHAT_IF = _list("""
everyone could read minds; the Moon vanished; all cars stopped for a week; nobody needed sleep
paper had never been invented; plants could walk; summer lasted all year
""")

DEBATES = _list("""
living in a city; working from home; owning a car; school uniforms; a four day week; eating less meat; electric cars
online lessons; zoos; nuclear power; paper books; tourism
""")

SKILLS = _list("""
sleep better; save money; learn a language; write a good résumé; start running; grow herbs indoors; calm a nervous dog
ask for a raise; clean a carpet; make new friends in a new city; stop procrastinating; repair a flat tire
take better photos; choose a laptop; remember names
""")

FOODS = _list("""
potatoes; rice; eggs; lentils; apples; mushrooms; chicken; beans; cheese; tomatoes; fish; spinach
""")

SPICES = _list("""
lemon; garlic; cinnamon; ginger; mint; honey; pepper; yogurt; nuts; onions
""")

LANGUAGES = (
    "Python",
    "Python",
    "Python",
    "Python",
    "JavaScript",
    "Java",
    "C++",
    "C",
    "Go",
    "Rust",
    "SQL",
    "Bash",
    "TypeScript",
)
