import { expect, test } from 'vitest';
import { canonicalAddress } from './repository-address.ts';

test('both forms of an address for ssh are one', async () => {
  const address = await canonicalAddress('git@git.example.com:team/a.git');
  expect(await canonicalAddress('ssh://git@GIT.example.com:22/team/a')).toBe(address);
  expect(await canonicalAddress('ssh://git@git.example.com:2222/team/a')).not.toBe(address);
});
