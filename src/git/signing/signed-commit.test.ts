import { expect, test } from 'vitest';
import { embedSignature, encodeCommit } from '../objects/commit-codec.ts';
import { signedCommit } from './signed-commit.ts';

const person = { name: 'anna', email: 'anna@example.com', time: 1000 };
const payload = encodeCommit({
  ...{ tree: 'a'.repeat(40), parents: ['b'.repeat(40)], author: person, committer: person },
  message: 'subject\n\ngpgsig of no meaning\n',
});
const armor = '-----BEGIN SSH SIGNATURE-----\nAAAA\nBBBB\n-----END SSH SIGNATURE-----';

test('a signed commit is what was signed, and the signature', () => {
  const split = signedCommit(embedSignature(payload, armor));
  expect(split?.payload.toString()).toBe(payload.toString());
  expect(split?.signature).toBe(armor);
});

test('what is not signed, or more than once, is no signed commit', () => {
  expect(signedCommit(payload)).toBeUndefined();
  expect(signedCommit(embedSignature(embedSignature(payload, armor), armor))).toBeUndefined();
  const other = embedSignature(payload, armor).toString().replace('gpgsig ', 'gpgsig-sha256 ');
  expect(signedCommit(Buffer.from(other))).toBeUndefined();
  const both = embedSignature(Buffer.from(other), armor);
  expect(signedCommit(both)).toBeUndefined();
  expect(signedCommit(Buffer.alloc(0))).toBeUndefined();
});
