import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { writeRef } from '../../../test/support/git/write-objects.ts';
import { eachUserPulls, KPTFILE, MAP, type UserPullBench } from '../../../test/support/user-pull-bench.ts';
import { SyncRequests } from '../../repository/sync-requests.ts';

const open = eachUserPulls();
let at: UserPullBench;
beforeEach(async () => {
  at = open();
  await at.policy({ publishOn: 'merge' });
  await at.world.push(at.path, { 'README.md': 'start' });
  await at.world.store.repository('apps').refresh();
  await at.poll();
});

const eventsOf = async (number: number) =>
  (await at.world.events('apps')).filter(
    (one) => one.includes(`/pulls/${number} `) || one.includes(`/pulls/${number}:`),
  );
const revisionOf = (name: string) => at.world.store.find(name);

describe('a merge of what is too large to be read', () => {
  /** Opens the first pull request, with a commit as Git permits it. */
  async function pull(files: Readonly<Record<string, string>>): Promise<void> {
    const time = Math.floor(at.clock.now() / 1000);
    const texts = [...new Set(Object.values(files))];
    const blobs = texts.map((text, index) => `blob\nmark :${index + 1}\ndata ${text.length}\n${text}\n`);
    const changes = Object.entries(files).map(([path, text]) => `M 100644 :${texts.indexOf(text) + 1} ${path}\n`);
    const commit = `commit refs/heads/feature\ncommitter a <a@example.com> ${time} +0000\ndata 1\nx\nfrom refs/heads/main^0\n`;
    git(at.path, ['fast-import', '--quiet'], `${blobs.join('')}${commit}${changes.join('')}\n`);
    await at.world.store.repository('apps').refresh();
    await at.forge.open({ head: 'feature', base: 'main', title: 'change', body: '' });
    const head = { branch: 'feature', commit: git(at.path, ['rev-parse', 'feature']).trim(), isSameRepository: true };
    at.forge.change(1, { head });
  }

  const longPath = Array.from({ length: 18 }, () => 'f'.repeat(240)).join('/');
  const manyFiles = () =>
    Object.fromEntries(Array.from({ length: 100_001 }, (_, count) => [`web/${count % 100}/${count}.txt`, 'x']));

  test.each([
    ['a Kptfile of 65 MiB', 'merge', () => ({ 'web/Kptfile': `${KPTFILE()}# ${'x'.repeat(65 * 1024 * 1024)}\n` })],
    ['a path of 4,300 characters', 'squash', () => ({ 'web/Kptfile': KPTFILE(), [`web/${longPath}`]: MAP })],
    ['100,001 files', 'squash', () => ({ 'web/Kptfile': KPTFILE(), ...manyFiles() })],
    ['100,001 files below another commit', 'rebase', () => ({ 'web/Kptfile': KPTFILE(), ...manyFiles() })],
  ] as const)('is reported, and later merges are published: %s', async (_, style, files) => {
    await pull(files());
    at.clock.advance(2000);
    if (style === 'rebase') await at.pull({ 'web/last.yaml': MAP }, { onTop: true });
    await at.pull({ 'api/Kptfile': KPTFILE(), 'api/map.yaml': MAP }, { branch: 'second' });
    await at.merge(1, 'bob', style);
    at.clock.advance(2000);
    await at.merge(2, 'bob', style);
    for (let turn = 0; turn < 3; turn += 1) await at.poll();
    expect(revisionOf('apps.api.merge-2')).toMatchObject({ lifecycle: 'Published' });
    expect(await eventsOf(1)).toContainEqual(expect.stringMatching(/^(MergeNotPublished|OutOfBand): /));
  });
});

describe('a merge that fails', () => {
  const failure = new SluiceError('InvalidInput', 'the host refuses the request');
  const down = new SluiceError('Unavailable', 'the host is down');
  let error: SluiceError;
  /** What fails of the host: what is about one pull request, or all. */
  let fails: 'first' | 'third' | 'all' | undefined;
  beforeEach(async () => {
    const { forge } = at;
    const mergedState = forge.mergedState.bind(forge);
    vi.spyOn(forge, 'mergedState').mockImplementation(async (pull) => {
      if ((fails === 'first' && pull.number === 1) || (fails === 'third' && pull.number === 3)) throw error;
      return mergedState(pull);
    });
    forge.before = () => {
      if (fails === 'all') throw down;
    };
    fails = undefined;
    error = failure;
    await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP });
    await at.pull({ 'web/Kptfile': KPTFILE(), 'web/map.yaml': MAP, 'web/other.yaml': MAP }, { branch: 'second' });
    await at.poll();
    await at.merge(1, 'bob');
    at.clock.advance(2000);
    await at.merge(2, 'bob');
  });

  async function poll(minutes: number): Promise<void> {
    for (let passed = 0; passed < minutes; passed += 1) await at.poll(60_000).catch(() => undefined);
  }

  const numbers = (all = [1, 2]) => all.map((count) => revisionOf(`apps.web.merge-${count}`)?.revision);

  test('holds up later ones for ten minutes, and is reported once', async () => {
    fails = 'first';
    await poll(8);
    expect([numbers(), await eventsOf(1)]).toEqual([[undefined, undefined], []]);
    await poll(60);
    expect(numbers()).toEqual([undefined, 1]);
    expect(await eventsOf(1)).toEqual([
      expect.stringContaining(`is not published, or not completely, since that fails: ${failure.message}`),
      // The later one has its place.
      expect.stringContaining('is not published: cannot publish the commit'),
    ]);
  });

  test('is tried again, and published where that is possible after later ones', async () => {
    await at.pull({ 'api/Kptfile': KPTFILE(), 'api/map.yaml': MAP }, { branch: 'third' });
    fails = 'third';
    await at.merge(3, 'bob');
    await poll(5);
    await at.pull({ 'web/more.yaml': MAP }, { branch: 'fourth' });
    await at.merge(4, 'bob');
    await poll(30);
    expect(numbers([1, 2, 4])).toEqual([1, 2, 3]);
    fails = undefined;
    await poll(15);
    expect(revisionOf('apps.api.merge-3')).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    expect(await eventsOf(3)).toHaveLength(1);
  });

  test('is published before later ones where it can be again', async () => {
    fails = 'first';
    await poll(8);
    fails = undefined;
    await poll(5);
    expect(numbers()).toEqual([1, 2]);
    expect(await eventsOf(1)).toEqual([]);
  });

  test('is not passed over while the host fails for all', async () => {
    fails = 'first';
    await poll(4);
    fails = 'all';
    await poll(60);
    fails = 'first';
    await poll(4);
    expect(numbers()).toEqual([undefined, undefined]);
    fails = undefined;
    await poll(5);
    expect(numbers()).toEqual([1, 2]);
    expect(await eventsOf(1)).toEqual([]);
  });

  test.each(['Unavailable', 'Timeout'] as const)(
    'is neither passed over nor reported where what fails for all ends between the attempts of two: %s',
    async (code) => {
      const { store } = at.world;
      const publish = store.publishMerged.bind(store);
      let failures = Number.POSITIVE_INFINITY;
      vi.spyOn(store, 'publishMerged').mockImplementation(async (...args) => {
        failures -= 1;
        if (failures >= 0) throw new SluiceError(code, 'the disk is full');
        return publish(...args);
      });
      await poll(14);
      failures = 1;
      await poll(14);
      expect(numbers()).toEqual([1, 2]);
      expect(await eventsOf(1)).toEqual([]);
    },
  );

  test('is tried each minute while it holds up others, however seldom the host is read', async () => {
    const requests = new SyncRequests(at.clock);
    at.restart({ requests });
    const head = { branch: 'second', commit: '' };
    requests.addReview(
      { namespace: 'default', name: 'apps' },
      { pull: { number: 2, isReview: false, isComment: false, head } },
    );
    fails = 'first';
    await poll(8);
    expect(at.nextPollMs).toBe(60_000);
    await poll(8);
    expect(at.nextPollMs).toBeGreaterThan(60_000);
  });

  test('keeps its own failure where the host cannot be read either', async () => {
    fails = 'first';
    const unreadable = new SluiceError('Unavailable', 'the list cannot be read');
    const listUpdated = at.forge.listUpdated.bind(at.forge);
    vi.spyOn(at.forge, 'listUpdated').mockImplementation(async (since, limit, ...rest) => {
      if (limit === 1) throw unreadable;
      return listUpdated(since, limit, ...rest);
    });
    await expect(at.poll()).rejects.toMatchObject({ message: unreadable.message, cause: failure });
  });

  test('by itself is passed over also if something is not available', async () => {
    fails = 'first';
    error = down;
    await poll(15);
    expect(numbers()).toEqual([undefined, 1]);
  });
});

describe('several merges', () => {
  /** The numbers of those about which the host refuses requests. */
  let refused: Set<number>;
  beforeEach(() => {
    refused = new Set();
    const { forge } = at;
    const mergedState = forge.mergedState.bind(forge);
    vi.spyOn(forge, 'mergedState').mockImplementation(async (pull) => {
      if (refused.has(pull.number)) throw new SluiceError('InvalidInput', 'the host refuses the request');
      return mergedState(pull);
    });
  });

  async function merge(...numbers: number[]): Promise<void> {
    for (const number of numbers)
      await at.pull({ [`web${number}/Kptfile`]: KPTFILE(), [`web${number}/a.yaml`]: MAP }, { branch: `b${number}` });
    await at.poll().catch(() => undefined);
    for (const number of numbers) {
      await at.merge(number, 'bob');
      at.clock.advance(2000);
    }
  }

  async function poll(count: number, milliseconds = 60_000): Promise<void> {
    for (let passed = 0; passed < count; passed += 1) await at.poll(milliseconds).catch(() => undefined);
  }

  const published = (number: number) => revisionOf(`apps.web${number}.merge-${number}`)?.revision;

  test('that fail hold up a later one little longer than one', async () => {
    refused = new Set([1, 2, 3, 4]);
    await merge(1, 2, 3, 4, 5);
    await poll(16);
    expect(published(5)).toBe(1);
  });

  test('one after another: the second one holds up later ones a minute longer, and none once it is reported', async () => {
    refused = new Set([1, 2]);
    await merge(1, 2, 3);
    for (let turn = 0; turn < 30 && (await eventsOf(1)).length === 0; turn += 1) await poll(1, 30_000);
    expect([await eventsOf(2), published(3)]).toEqual([[], undefined]);
    await poll(2, 30_000);
    expect(await eventsOf(2)).toEqual([expect.stringContaining('later merges do not wait for it')]);
    expect(published(3)).toBe(1);
    await merge(4);
    await poll(1);
    expect(published(4)).toBe(1);
  });

  test('are published in their order, without a report, after an outage of the repository', async () => {
    await merge(1, 2, 3);
    const { store } = at.world;
    const spy = vi.spyOn(store, 'publishMerged').mockRejectedValue(new SluiceError('Unavailable', 'the disk is full'));
    await poll(40, 30_000);
    spy.mockRestore();
    await poll(2);
    expect([1, 2, 3].map(published)).toEqual([1, 1, 1]);
    expect(await at.world.events('apps')).toEqual([]);
  });

  test('one that was reported as missing is reported once more if it fails for good', async () => {
    const ref = 'refs/heads/main';
    const before = readRef(at.path, ref) ?? '';
    await merge(1);
    const merged = readRef(at.path, ref) ?? '';
    writeRef(at.path, ref, before);
    await at.world.store.repository('apps').refresh();
    await poll(15);
    expect(await at.world.events('apps')).toEqual([expect.stringContaining('does not arrive on the main branch')]);
    writeRef(at.path, ref, merged);
    await at.world.store.repository('apps').refresh();
    refused = new Set([1]);
    await poll(60);
    expect((await eventsOf(1)).filter((one) => one.startsWith('MergeNotPublished'))).toEqual([
      expect.stringContaining('does not arrive on the main branch'),
      expect.stringContaining('the host refuses the request'),
    ]);
  });
});
