"""The nouns of the demo corpus, by topic, and the ambiguous ones with the topics of their senses.

Lists are ordered by frequency.
"""

from pysimt_sac.corpora.demo_lexicon import parse_ambiguous, parse_nouns, parse_topic

# Each topic: people; things that can be held; larger things; places.
GENERIC = parse_topic("""
    man/men mann/männer m, woman/women frau/frauen f, boy/boys junge/jungen m jungen, girl/girls mädchen/mädchen n,
    child/children kind/kinder n, lady/ladies dame/damen f, neighbor/neighbors nachbar/nachbarn m nachbarn,
    grandfather/grandfathers großvater/großväter m;
    book/books buch/bücher n, bottle/bottles flasche/flaschen f, umbrella/umbrellas regenschirm/regenschirme m,
    box/boxes kiste/kisten f, camera/cameras kamera/kameras f, toy/toys spielzeug/spielzeuge n;
    dog/dogs hund/hunde m, chair/chairs stuhl/stühle m, cat/cats katze/katzen f, door/doors tür/türen f,
    wall/walls mauer/mauern f;
    house/houses haus/häuser n, park/parks park/parks m, building/buildings gebäude/gebäude n,
    room/rooms zimmer/zimmer n, courtyard/courtyards hof/höfe m, square/squares marktplatz/marktplätze m
""")

TOPICS = {
    "city": parse_topic("""
        tourist/tourists tourist/touristen m touristen, driver/drivers fahrer/fahrer m,
        policeman/policemen polizist/polizisten m polizisten, cyclist/cyclists radfahrer/radfahrer m;
        bag/bags tasche/taschen f, suitcase/suitcases koffer/koffer m, wallet/wallets geldbeutel/geldbeutel m;
        car/cars auto/autos n, bicycle/bicycles fahrrad/fahrräder n, taxi/taxis taxi/taxis n;
        street/streets straße/straßen f, station/stations bahnhof/bahnhöfe m, shop/shops laden/läden m,
        market/markets markt/märkte m, hotel/hotels hotel/hotels n
    """),
    "water": parse_topic("""
        fisherman/fishermen fischer/fischer m, swimmer/swimmers schwimmer/schwimmer m, diver/divers taucher/taucher m,
        sailor/sailors matrose/matrosen m matrosen;
        net/nets netz/netze n, shell/shells muschel/muscheln f, fish/fish fisch/fische m, rope/ropes seil/seile n;
        boat/boats boot/boote n, duck/ducks ente/enten f, ship/ships schiff/schiffe n, sail/sails segel/segel n;
        river/rivers fluss/flüsse m, sea/seas meer/meere n, lake/lakes see/seen m, harbor/harbors hafen/häfen m,
        bay/bays bucht/buchten f
    """),
    "sport": parse_topic("""
        player/players spieler/spieler m, runner/runners läufer/läufer m, fan/fans fan/fans m,
        referee/referees schiedsrichter/schiedsrichter m;
        ball/balls ball/bälle m, helmet/helmets helm/helme m, jersey/jerseys trikot/trikots n,
        medal/medals medaille/medaillen f;
        goal/goals tor/tore n, flag/flags fahne/fahnen f, scoreboard/scoreboards anzeigetafel/anzeigetafeln f;
        stadium/stadiums stadion/stadien n, gym/gyms turnhalle/turnhallen f, arena/arenas arena/arenen f
    """),
    "office": parse_topic("""
        lawyer/lawyers anwalt/anwälte m, secretary/secretaries sekretärin/sekretärinnen f,
        judge/judges richter/richter m, notary/notaries notar/notare m;
        phone/phones telefon/telefone n, stamp/stamps briefmarke/briefmarken f, contract/contracts vertrag/verträge m;
        desk/desks schreibtisch/schreibtische m, computer/computers computer/computer m, shelf/shelves regal/regale n;
        office/offices büro/büros n, town_hall/town_halls rathaus/rathäuser n, archive/archives archiv/archive n
    """),
    "school": parse_topic("""
        teacher/teachers lehrerin/lehrerinnen f, pupil/pupils schüler/schüler m,
        student/students student/studenten m studenten;
        notebook/notebooks heft/hefte n, eraser/erasers radiergummi/radiergummis m,
        backpack/backpacks rucksack/rucksäcke m;
        blackboard/blackboards tafel/tafeln f, globe/globes globus/globen m;
        school/schools schule/schulen f, classroom/classrooms klassenzimmer/klassenzimmer n,
        library/libraries bibliothek/bibliotheken f
    """),
    "music": parse_topic("""
        musician/musicians musiker/musiker m, singer/singers sängerin/sängerinnen f,
        dancer/dancers tänzerin/tänzerinnen f, pianist/pianists pianist/pianisten m pianisten;
        guitar/guitars gitarre/gitarren f, violin/violins geige/geigen f, microphone/microphones mikrofon/mikrofone n;
        piano/pianos klavier/klaviere n, loudspeaker/loudspeakers lautsprecher/lautsprecher m,
        curtain/curtains vorhang/vorhänge m;
        concert_hall/concert_halls konzertsaal/konzertsäle m, church/churches kirche/kirchen f,
        theater/theaters theater/theater n
    """),
    "workshop": parse_topic("""
        worker/workers arbeiter/arbeiter m, mechanic/mechanics mechaniker/mechaniker m,
        engineer/engineers ingenieur/ingenieure m, plumber/plumbers klempner/klempner m;
        hammer/hammers hammer/hämmer m, tool/tools werkzeug/werkzeuge n, saw/saws säge/sägen f,
        cable/cables kabel/kabel n;
        machine/machines maschine/maschinen f, ladder/ladders leiter/leitern f, engine/engines motor/motoren m;
        workshop/workshops werkstatt/werkstätten f, shed/sheds schuppen/schuppen m, garage/garages garage/garagen f
    """),
    "kitchen": parse_topic("""
        cook/cooks koch/köche m, waiter/waiters kellner/kellner m, baker/bakers bäcker/bäcker m,
        grandmother/grandmothers großmutter/großmütter f;
        cup/cups tasse/tassen f, cake/cakes kuchen/kuchen m, knife/knives messer/messer n,
        plate/plates teller/teller m, spoon/spoons löffel/löffel m;
        table/tables tisch/tische m, oven/ovens ofen/öfen m, refrigerator/refrigerators kühlschrank/kühlschränke m;
        kitchen/kitchens küche/küchen f, restaurant/restaurants restaurant/restaurants n,
        bakery/bakeries bäckerei/bäckereien f
    """),
    "farm": parse_topic("""
        farmer/farmers bauer/bauern m bauern, gardener/gardeners gärtner/gärtner m,
        shepherd/shepherds schäfer/schäfer m, hunter/hunters jäger/jäger m;
        flower/flowers blume/blumen f, basket/baskets korb/körbe m, apple/apples apfel/äpfel m,
        shovel/shovels schaufel/schaufeln f;
        horse/horses pferd/pferde n, tractor/tractors traktor/traktoren m, cow/cows kuh/kühe f,
        fence/fences zaun/zäune m, tree/trees baum/bäume m;
        garden/gardens garten/gärten m, meadow/meadows wiese/wiesen f, forest/forests wald/wälder m,
        barn/barns scheune/scheunen f
    """),
    "winter": parse_topic("""
        skier/skiers skifahrer/skifahrer m, hiker/hikers wanderer/wanderer m,
        skater/skaters eisläuferin/eisläuferinnen f;
        scarf/scarves schal/schals m, glove/gloves handschuh/handschuhe m, snowball/snowballs schneeball/schneebälle m;
        sled/sleds schlitten/schlitten m, snowman/snowmen schneemann/schneemänner m;
        snow/snow schnee/schnee m, valley/valleys tal/täler n, hut/huts hütte/hütten f,
        ski_resort/ski_resorts skigebiet/skigebiete n
    """),
    "zoo": parse_topic("""
        visitor/visitors besucher/besucher m, biologist/biologists biologin/biologinnen f,
        zookeeper/zookeepers tierpfleger/tierpfleger m;
        banana/bananas banane/bananen f, bucket/buckets eimer/eimer m, ticket/tickets eintrittskarte/eintrittskarten f;
        monkey/monkeys affe/affen m affen, cage/cages käfig/käfige m,
        elephant/elephants elefant/elefanten m elefanten, aquarium/aquariums aquarium/aquarien n;
        zoo/zoos zoo/zoos m, pond/ponds teich/teiche m, petting_zoo/petting_zoos streichelzoo/streichelzoos m
    """),
    "party": parse_topic("""
        guest/guests gast/gäste m, bride/brides braut/bräute f, clown/clowns clown/clowns m, aunt/aunts tante/tanten f;
        candle/candles kerze/kerzen f, gift/gifts geschenk/geschenke n, balloon/balloons luftballon/luftballons m,
        mask/masks maske/masken f;
        lamp/lamps lampe/lampen f, sofa/sofas sofa/sofas n, fireplace/fireplaces kamin/kamine m;
        party/parties feier/feiern f, living_room/living_rooms wohnzimmer/wohnzimmer n,
        ballroom/ballrooms ballsaal/ballsäle m
    """),
    "hospital": parse_topic("""
        doctor/doctors arzt/ärzte m, nurse/nurses krankenschwester/krankenschwestern f,
        patient/patients patient/patienten m patienten, surgeon/surgeons chirurg/chirurgen m chirurgen;
        bandage/bandages verband/verbände m, syringe/syringes spritze/spritzen f, pill/pills tablette/tabletten f;
        bed/beds bett/betten n, wheelchair/wheelchairs rollstuhl/rollstühle m;
        hospital/hospitals krankenhaus/krankenhäuser n, ambulance/ambulances krankenwagen/krankenwagen m,
        clinic/clinics klinik/kliniken f
    """),
    "night": parse_topic("""
        researcher/researchers forscher/forscher m, guard/guards wächter/wächter m, vampire/vampires vampir/vampire m;
        flashlight/flashlights taschenlampe/taschenlampen f, telescope/telescopes fernrohr/fernrohre n,
        torch/torches fackel/fackeln f;
        owl/owls eule/eulen f, star/stars stern/sterne m, ruin/ruins ruine/ruinen f;
        cave/caves höhle/höhlen f, tower/towers turm/türme m, castle/castles schloss/schlösser n
    """),
}

CLOTHES = parse_nouns("""
    shirt/shirts hemd/hemden n, jacket/jackets jacke/jacken f, dress/dresses kleid/kleider n,
    skirt/skirts rock/röcke m, sweater/sweaters pullover/pullover m, apron/aprons schürze/schürzen f
""")

# Only in the out-of-domain split: unknown words.
UNSEEN_PEOPLE = parse_nouns("""
    robot/robots roboter/roboter m, penguin/penguins pinguin/pinguine m, queen/queens königin/königinnen f
""")
UNSEEN_PLACES = parse_nouns("""
    lighthouse/lighthouses leuchtturm/leuchttürme m, desert/deserts wüste/wüsten f,
    airport/airports flughafen/flughäfen m
""")

AMBIGUOUS = parse_ambiguous("""
bank; bank f city; ufer n water; 0.18; large
hat; hut m city; mütze f winter; 0.20; small
match; spiel n sport; streichholz n party; 0.18; small
bat; schläger m sport; fledermaus f night; 0.18; small
seal; robbe f water; siegel n office; 0.20; small
court; platz m sport; gericht n office; 0.20; large
letter; brief m office; buchstabe/buchstaben m school; 0.20; small
nut; nuss f kitchen; schraubenmutter f workshop; 0.18; small
coach; trainer m sport; reisebus m city; 0.20; large
bow; schleife f party; bogen m farm; 0.20; small
plant; pflanze f farm; fabrik f workshop; 0.18; large
screen; bildschirm m office; leinwand f music; 0.20; large
key; schlüssel m city; taste f music; 0.18; small
pen; stift m school; gehege n zoo; 0.20; small
""")
