import { expect, test } from 'vitest';
import { notesInCluster } from './notes.ts';

test('an adoption for a cluster is a command for a data folder', () => {
  const note = { namespace: 'team', subject: 'apps', reason: 'OutOfBand', message: 'one', names: [] };
  const next = 'after the registration: sluice repo adopt apps -n team; check the list';
  expect(notesInCluster([{ ...note, next }, note])).toEqual([
    {
      ...note,
      next: 'after the registration: in a data folder whose key the cluster trusts (docs/trust.md): sluice repo adopt apps -n team; check the list',
    },
    note,
  ]);
});
