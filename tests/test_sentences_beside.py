"""Ordinary sentences beside a document's: what a review of the rules for short pairs found wrong."""

import pytest

from reward.claims.names.reading import read_name
from reward.types import Outcome
from tests.test_loopholes import outcome


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ("In all, 51 people attended the meeting.", "Mr. Li attended the meeting."),
        ("In all, 11 people attended the meeting.", "President Xi attended the meeting."),
        ("Kim, 54, met reporters.", "Liv Kim met reporters."),
        ("He was arrested twice.", "Crime rose by 100%."),
        ("She won the prize three times. Sales rose sharply.", "Sales rose by 200%."),
        ("The bridge was begun in 1887 and completed in 1905.", "The bridge was completed before 1900."),
        ("The war began in 1939 and ended in 1945.", "The war began after 1940."),
        (
            "The law was proposed in 1998 but was never passed.",
            "The law was passed before 2000.",
        ),
        ("The company was not founded in 1998.", "The company was founded before 2000."),
        ("The Reds lost 4-0 to the Cubs.", "The Reds lost 3-5 to the Cubs."),
        (
            "Apple sold 45 million phones in 2015 and 78 million phones in 2016.",
            "Apple sold 40 to 50 million phones in 2016.",
        ),
        ("The interest rate was 4.5 percent.", "The interest rate went from 4 percent to 5 percent."),
        ("The dose must not exceed 15 mg.", "The dose must be 10 to 20 mg."),
        ("The EU sent troops to Mali.", "AU sent troops to Mali."),
        ("Mr. Nguyen was arrested in Hanoi.", "Le was arrested in Hanoi."),
        ("The firm is based in Seattle, Washington.", "The firm is based in Washington, DC."),
        ("Denzel Washington won an award.", "He lives in Washington, DC."),
        ("Dr Jones won the race.", "D. R. Jones won the race."),
        ("Ed Smith left.", "E. D. Smith left."),
        ("Mrs Keller won the race.", "Mr Keller won the race."),
        ("Ohio State University opened.", "Ohio University opened."),
        ("The factory was sold in November 2017.", "The factory was sold in early 2017."),
        ("Smith doubled in the first inning. Sales grew.", "Sales rose by 100%."),
        ("She tripled her lead. Prices rose.", "Prices rose by 200%."),
        ("The company was sold by the bank founded in 1987.", "The company was sold before 1990."),
        ("Fire destroyed the church built in 1850.", "Fire destroyed the church before 1860."),
        ("Smith beat Jones in 1998.", "Jones beat Smith before 2000."),
        ("0% of voters agreed.", "A thousandth of voters agreed."),
        ("Heat came.", "El niño brought rain."),
        ("Die Firma hat 1.200 Mitarbeiter.", "The firm has 1.2 employees."),
        ("Sales have more than doubled since 2010.", "Sales have nearly doubled since 2010."),
        ("More than 300 people came.", "Nearly 300 people came."),
        ("Construction began in the autumn of 2012.", "Construction began in early 2012."),
        ("Construction began in Q1 2012.", "Construction began in late 2012."),
        ("J.K. Rowling wrote it.", "J.R. Rowling wrote it."),
        ("Pope John Paul II visited Poland.", "Pope John Paul I visited Poland."),
        ("Queen Elizabeth II opened it.", "Queen Elizabeth I opened it."),
        ("The quake struck at 14:32 local time (12:32 GMT).", "The quake struck at 14:32 GMT."),
        ("The quake struck at 12:32 GMT (14:32 local time).", "The quake struck at 14:32 GMT."),
        ("Revenue rose 12% to $4.5 billion in the quarter.", "Revenue rose by $4.5 billion."),
        ("Profit was £45m, against £38m a year earlier.", "Profit fell to £38 million."),
        ("Der Umsatz stieg um 5,3 Prozent auf 2,4 Milliarden Euro.", "Revenue fell by 5.3%."),
        ("Le chômage a baissé de 5 %.", "Unemployment rose by 5%."),
        ("La empresa gastó 3 mil millones de euros.", "The company spent 3 million euros."),
    ],
)
def test_a_wrong_answer_is_refuted(document: str, answer: str) -> None:
    assert outcome(document, answer) is Outcome.REFUTED


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ("Ms. Harris and Biden spoke in Ohio.", "Mr. Biden spoke in Ohio."),
        ("Mr. Trump met Merkel.", "Ms. Merkel met Mr. Trump."),
        ("He would miss Obama's speech.", "Mr. Obama gave a speech."),
        ("Mr. Obama's wife Michelle Obama spoke.", "Mrs. Obama spoke."),
        ("Mr and Mrs Dursley lived in Surrey.", "Mr Dursley lived in Surrey."),
        ("The company has 200 Chili's restaurants.", "The company has 200 restaurants."),
        ("The port handled three ore carriers.", "The port handled three carriers."),
        ("The party had three Franken aides.", "The party had three aides."),
        ("The storm hit late May 7.", "The storm hit late May 7."),
        ("The vote was held on 7 May 2015.", "The vote was held late May 7, 2015."),
        (
            "New York State Attorney General Letitia James sued.",
            "New York Attorney General Letitia James sued.",
        ),
        ("The Texas State Legislature passed the bill.", "The Texas Legislature passed the bill."),
        ("2016 was warmer than 2015.", "2015 was colder than 2016."),
        (
            "Queen Elizabeth knighted Drake.",
            "The knighthood was bestowed by Queen Elizabeth upon Drake.",
        ),
        ("GDP growth was +2.1% in 2019.", "GDP growth rose to 2.1% in 2019."),
        ("World War II (1939-1945) was long.", "The war began in late 1939."),
        ("The study ran between 2014 and 2016.", "The study began in late 2014."),
        ("DC Comics announced a film in Washington.", "In Washington, DC Comics announced a film."),
        ("The law took effect in 1987.", "The law took effect before 1990."),
        ("It was made by JRR Tolkien.", "It was made by J. R. R. Tolkien."),
        ("The price rose by 200%.", "The price tripled."),
        (
            "The firm moved to the U.S. The deal cost $4 million.",
            "The firm moved to the U.S. A deal cost $4 million.",
        ),
        ("Sammy Davis Jr. sang. A statue was built.", "It honours Sammy Davis Jr. A statue was built."),
        ("Mr & Mrs Keller won the race.", "Mr Keller won the race."),
        ("Mr. and the late Mrs. Keller won.", "Mr. Keller won."),
        ("Mrs. Trump and the president spoke. Trump left early with his wife.", "Mr. Trump left early."),
        ("Smith, 40, was shot. Police said Ms. Smith is his wife.", "Mr. Smith was shot."),
        ("The three Dias brothers played.", "Three brothers played."),
        ("He has 12 Mesi shirts.", "He has 12 shirts."),
        ("The firm lost money in the first quarter.", "After a quarter of losses, the firm cut jobs."),
        ("Stratford-on-Avon grew.", "Stratford-upon-Avon grew."),
        ("La empresa tiene 1.200 empleados.", "The firm has 1,200 employees."),
        ("El viaje duró tres meses.", "The trip took 3 months."),
        ("Il viaggio durò due anni e mezzo.", "The trip took two and a half years."),
        ("Turnout was 66.7 percent.", "Two-thirds of voters turned out."),
        ("A quarter of sales came from China.", "25% of sales came from China."),
        ("Sales have more than doubled since 2010.", "Sales rose by more than 100% since 2010."),
        ("Il tasso è salito al 12 per cento.", "The rate rose to 12 percent."),
        ("Settecento persone hanno partecipato.", "Some 700 people took part."),
        ("Un tiers des électeurs a voté.", "A third of voters voted."),
        ("The Organisation for Economic Co-operation and Development warned.", "The OECD warned."),
        ("Queen Elizabeth I reigned until 1603.", "Elizabeth I reigned until 1603."),
        ("The quake struck at 14:32 local time.", "The quake struck at 2:32 p.m."),
        ("The show starts at 8 p.m. ET.", "The show starts at 8 p.m. local time."),
        ("The road is more than 4,800 m long.", "The road is nearly 5 km long."),
        ("Part I of Faust appeared in 1808.", "Part I of Faust appeared in 1808."),
        ("Revenue rose 12% to $4.5 billion in the quarter.", "Revenue rose by 12% to $4.5 billion."),
        ("Der Umsatz stieg auf 2,4 Milliarden Euro.", "Revenue rose to 2.4 billion euros."),
        ("El precio subió a 5 euros.", "The price rose to 5 euros."),
        ("La deuda es de 3.500 millones de euros.", "The debt is 3.5 billion euros."),
        ("A cidade tem 350 mil habitantes.", "The city has 350,000 inhabitants."),
        ("Construction began in the spring of 2012.", "Construction began in early 2012."),
    ],
)
def test_a_right_answer_is_not_refuted(document: str, answer: str) -> None:
    assert outcome(document, answer) is not Outcome.REFUTED


@pytest.mark.parametrize("answer", ["A -", "A &", "Obama, Biden", "Bath, Somerset"])
def test_what_is_no_one_name_is_none(answer: str) -> None:
    name = read_name(answer)
    assert name is None or name.tokens == ("a",)
