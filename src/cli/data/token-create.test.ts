import { expect, test } from 'vitest';
import { cliFixture } from '../testing.ts';

test.each(['controller:approval', 'resolver:ipam', 'push', 'system:masters', 'says: x', 'a\u200bb', ''])(
  'no token is created for a name that is reserved or misleads: %j',
  async (name) => {
    await using cli = await cliFixture();
    const made = await cli.run('token', 'create', name, '-o', 'token');
    expect(made).toMatchObject({ stdout: '', stderr: expect.stringContaining('cannot be the name of an actor') });
    expect(made.code).not.toBe(0);
  },
);
