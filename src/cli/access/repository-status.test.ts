import { expect, test } from 'vitest';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { expectReady } from './repository-status.ts';

test('the wait for a repository ends when it is unregistered meanwhile', async () => {
  const object = { metadata: { namespace: 'default', name: 'web' }, spec: {} } as Stored<Repository>;
  const client = {
    list: async () => ({ items: [object], resourceVersion: '1' }),
    async *watch() {
      yield { type: 'DELETED', object };
      await new Promise(() => undefined);
    },
  };
  const api = { client, clock: new ManualClock(0), namespace: 'default', server: 'https://127.0.0.1' };
  await expect(expectReady(api as never, object)).rejects.toMatchObject({
    code: 'NotFound',
    message: 'repository "web" is not registered any more',
  });
});
