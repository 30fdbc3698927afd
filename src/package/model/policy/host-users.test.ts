import { expect, test } from 'vitest';
import { hostUsersOf, userOfAccount } from './host-users.ts';

test('lines map users of the host to persons, independent of case', () => {
  const users = hostUsersOf('# people\n\nOcto-Cat=anna\r\n second = anna smith\nberta-h = berta\n');
  expect(['octo-cat', 'OCTO-CAT', 'berta-h', 'second', 'anna'].map((user) => userOfAccount(users, user))).toEqual([
    ...['anna', 'anna', 'berta', undefined, undefined],
  ]);
  expect(users.problems).toEqual(['line 4 does not name exactly one user']);
});

test.each([
  ['anna', ' is not <user of the host>=<person>'],
  ['=anna', ' is not <user of the host>=<person>'],
  ['a b=anna', ' is not <user of the host>=<person>'],
  ['a=', ' is not <user of the host>=<person>'],
  ['a=controller:render', ': controller:render cannot be the name of a user'],
  ['a=push', ': push cannot be the name of a user'],
  ['a=group:sec', ': group:sec cannot be the name of a user'],
  ['a=*', ' does not name exactly one user'],
])('%s lists no user', (line, why) => {
  expect(hostUsersOf(line)).toEqual({ persons: new Map(), problems: [`line 1${why}`] });
});

test('a user who is listed as two persons is none, also where a third line repeats one of them', () => {
  const users = hostUsersOf('a=anna\nA=mallory\na=anna\nb=berta\nb=berta\n');
  expect([...users.persons]).toEqual([['b', 'berta']]);
  expect(users.problems[0]).toBe('line 2: A is listed already (line 1) as another person, so that it is none');
});
