import { expect, test } from 'vitest';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { portableObject } from './portable-object.ts';

test('a synchronisation that was requested once is no part of a Repository', () => {
  const portable = (sync: object) => {
    const spec = { type: 'git', git: { repo: 'https://git.example.com/a.git' }, sync } as never;
    return portableObject(repositoryKind, repositoryKind.complete({ metadata: { name: 'a' }, spec })).object as never;
  };
  const runOnceAt = '2026-01-01T00:00:00Z';
  expect(portable({ runOnceAt })).not.toHaveProperty('spec.sync');
  expect(portable({ runOnceAt, schedule: '0 * * * *' })).toHaveProperty('spec.sync', { schedule: '0 * * * *' });
});
