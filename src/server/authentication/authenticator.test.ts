import { expect, test } from 'vitest';
import { type AuthenticationRequest, firstOf } from './authenticator.ts';

test.each(['push', 'controller:approval', 'resolver:ipam', 'group:ops', 'says: x', 'a\u200bb'])(
  'no user is authenticated with a name that Sluice uses itself or that misleads: %j',
  async (name) => {
    const problems: unknown[] = [];
    const authenticator = firstOf([{ authenticate: () => ({ name, groups: [] }) }], (error) => problems.push(error));
    expect(await authenticator.authenticate({} as AuthenticationRequest)).toBeUndefined();
    expect(problems).toMatchObject([{ code: 'Refused' }]);
  },
);

test('names of service accounts and of people are accepted', async () => {
  for (const name of ['system:serviceaccount:default:ci', 'Jane Doe', 'jane@example.com']) {
    const authenticator = firstOf([{ authenticate: () => ({ name, groups: [] }) }], () => undefined);
    expect(await authenticator.authenticate({} as AuthenticationRequest)).toMatchObject({ name });
  }
});
