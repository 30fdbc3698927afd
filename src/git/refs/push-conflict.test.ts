import { expect, test } from 'vitest';
import { rejectionError } from './push-conflict.ts';

const update = { type: 'create', ref: 'refs/heads/main', new: 'a'.repeat(40) } as const;

test('a full disk of the server is no rule: the message has the next step, and the push can be repeated', () => {
  const words = 'error: unable to write file: No space left on device';
  const error = rejectionError([{ ref: update.ref, reason: 'unpacker error' }], [update], words);
  expect(error.code).toBe('Unavailable');
  expect(error.message).toContain(words);
  expect(error.message).toContain('The disk of the Git host is full: free space there');
  expect(rejectionError([{ ref: update.ref, reason: 'unpacker error' }], [update], '').code).toBe('PushRefused');
});
