import { expect, test } from 'vitest';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { WorkerLimits } from './worker-limits.ts';

const READ = { lastFullSyncTime: '2026-01-01T00:00:00Z' };

function repository(namespace: string, name: string, host: string, status = {}) {
  const object = repositoryKind.complete({
    metadata: { namespace, name },
    spec: { git: { repo: `https://${host}/a` } },
  });
  return { ...object, status };
}

/** How many of 100 repositories of a namespace get a worker. */
function occupied(lane: WorkerLimits, namespace: string, host: (index: number) => string, status = {}): number {
  const all = Array.from({ length: 100 }, (_, index) => repository(namespace, `r${index}`, host(index), status));
  return all.filter((object) => lane.occupy(object, false) !== undefined).length;
}

test('new repositories of one namespace leave workers to others, also at the same host, and known ones always get one', () => {
  const lane = new WorkerLimits();
  for (const namespace of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'])
    expect(occupied(lane, namespace, () => 'hangs.example.com')).toBe(4);
  expect(occupied(lane, 'k', () => 'hangs.example.com')).toBe(0);
  expect(lane.occupy(repository('a', 'known', 'git.example.com', READ), false)).toBeDefined();
  expect(lane.occupy(repository('a', 'open', 'git.example.com'), true)).toBeDefined();
  expect(occupied(lane, 'a', (index) => `${index}.example.com`, READ)).toBe(31);
});

test('a repository that failed waits behind other slow ones until it succeeds, and each gives its worker back once', () => {
  const lane = new WorkerLimits();
  const known = repository('a', 'known', 'git.example.com', READ);
  const key = { namespace: 'a', name: 'known' };
  const ends = Array.from({ length: 4 }, (_, index) =>
    lane.occupy(repository('a', `r${index}`, 'x.example.com'), false),
  );
  lane.note(key, true);
  expect(lane.occupy(known, true)).toBeUndefined();
  ends[0]?.();
  const end = lane.occupy(known, true);
  expect(end).toBeDefined();
  end?.();
  for (const one of ends.slice(1)) one?.();
  lane.note(key, false);
  expect(lane.isSuspect(key)).toBe(false);
  expect(occupied(lane, 'b', () => 'x.example.com')).toBe(4);
});
