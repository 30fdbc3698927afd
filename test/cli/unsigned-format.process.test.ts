import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runCli } from '../../src/cli/testing.ts';
import { unsignedFormat } from '../support/unsigned-format.ts';

const REVISIONS = ['cache.main', 'cache.v1', 'db.v1', 'gone.main', 'web.main', 'web.v1', 'web.v2'];
const OLD_RECORD = /refs\/sluice\/records\/[0-9a-f]{8}-/;

const listSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({
        name: z.string(),
        labels: z.record(z.string(), z.string()).optional(),
        annotations: z.record(z.string(), z.string()).optional(),
        finalizers: z.array(z.string()).optional(),
        ownerReferences: z.array(z.object({ name: z.string() })).optional(),
      }),
      spec: z.object({ lifecycle: z.string() }),
      status: z.object({ outOfBand: z.object({ reason: z.string(), message: z.string() }).optional() }),
    }),
  ),
});
const adoptSchema = z.object({
  id: z.string(),
  adopted: z.boolean(),
  tags: z.array(z.object({ ref: z.string(), oid: z.string(), reason: z.string() })),
  records: z.array(z.object({ ref: z.string(), revision: z.string().optional() })),
});

let folder: string;
let repository: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-unsigned-'));
  repository = unsignedFormat(join(folder, 'data'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (...words: string[]) => runCli(words, { SLUICE_DATA: join(folder, 'data'), SLUICE_USER: 'anna' });
const git = (...words: string[]) =>
  execFileSync('git', ['--git-dir', repository, ...words], { encoding: 'utf8' }).trim();
const refs = () => git('for-each-ref', '--format=%(objectname) %(refname)').split('\n');

async function ok(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...words);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  return stdout;
}

async function revisions() {
  const { items } = listSchema.parse(JSON.parse(await ok('rpkg', 'get', '-o', 'json')));
  return new Map(
    items.map(({ metadata, spec, status }) => [
      metadata.name.replace('packages.', ''),
      { ...metadata, ...spec, ...status },
    ]),
  );
}

interface Shown {
  readonly outOfBand?: { readonly reason: string; readonly message: string } | undefined;
}

const flag = (shown: Shown | undefined) => shown?.outOfBand && `${shown.outOfBand.reason}: ${shown.outOfBand.message}`;
const adoption = async (...words: string[]) =>
  adoptSchema.parse(JSON.parse(await ok('repo', 'adopt', 'packages', '-o', 'json', ...words)));

describe('a data folder of the version without signed statements', () => {
  test('opens with the same revisions, and loses nothing', async () => {
    const before = refs();
    const shown = await revisions();
    expect([...shown.keys()]).toEqual(REVISIONS);
    expect([...shown.values()].map(({ lifecycle }) => lifecycle)).toEqual([
      ...['Published', 'Published', 'Proposed', 'Published', 'Published', 'Published', 'Draft'],
    ]);
    expect(flag(shown.get('web.v1'))).toContain('is not signed; "sluice repo adopt" lists it for adoption');
    // Unsigned metadata does not count.
    expect(shown.get('web.v2')?.labels).toBeUndefined();
    expect(refs().filter((ref) => !ref.endsWith('refs/sluice/repository'))).toEqual(before);
  });

  test('can be adopted: the objects of the dry run count, records keep metadata and no verdicts', async () => {
    const before = refs();
    const dry = await adoption();
    expect(dry.adopted).toBe(false);
    expect(dry.tags.map(({ ref, reason }) => [ref, reason])).toEqual([
      ['refs/sluice/deleted/gone%2Fv1', 'Unsigned'],
      ['refs/tags/cache/v1', 'UnsignedApproval'],
      ['refs/tags/web/v1', 'UnsignedApproval'],
    ]);
    expect(dry.records.map(({ revision }) => revision)).toEqual([
      'packages.web.v1',
      'packages.web.v2',
      'packages.db.v1',
    ]);
    expect(refs().filter((ref) => !ref.endsWith('refs/sluice/repository'))).toEqual(before);

    expect(await adoption('--yes')).toEqual({ ...dry, adopted: true });
    expect(git('show', 'refs/sluice/adopted:adopted')).toBe(dry.tags.map(({ oid, ref }) => `${oid} ${ref}`).join('\n'));
    expect(refs().filter((ref) => OLD_RECORD.test(ref))).toEqual([]);
    const shown = await revisions();
    expect([...shown.keys()]).toEqual(REVISIONS);
    expect(flag(shown.get('web.v1'))).toBeUndefined();
    expect(shown.get('web.v1')).toMatchObject({ labels: { team: 'shop' }, finalizers: ['example.com/keep'] });
    expect(shown.get('web.v2')).toMatchObject({
      labels: { team: 'shop' },
      annotations: { 'example.com/ticket': 'T-2' },
      finalizers: ['example.com/keep'],
      ownerReferences: [{ name: 'owner' }],
    });
    const why = await ok('why', 'packages.web.v2');
    expect(why).toContain('the Kptfile has True, but no record proves for which content; set the condition again');
    expect(await ok('repo', 'adopt', 'packages')).toBe('nothing to adopt in packages\n');
  });

  test('an adopted record is a child of the unsigned one', async () => {
    const old = git('rev-parse', 'refs/sluice/records/79ccd24d-7c91-5a45-b667-aeecf5b10e25');
    await adoption('--yes');
    expect(git('rev-parse', 'refs/sluice/records/web/v2^')).toBe(old);
  });

  test('objects can be adopted in parts', async () => {
    await adoption('--only', 'web/*', '--yes');
    const half = await revisions();
    expect([flag(half.get('web.v1')), flag(half.get('cache.v1'))]).toEqual([
      ...[undefined, expect.stringContaining('is not signed')],
    ]);
    await adoption('--yes');
    const whole = await revisions();
    expect([flag(whole.get('web.v1')), flag(whole.get('cache.v1'))]).toEqual([...[undefined, undefined]]);
  });

  test('a tag that moves no longer counts, and neither do entries that a push added to the list', async () => {
    await adoption('--yes');
    const [web, main] = [git('rev-parse', 'refs/tags/web/v1'), git('rev-parse', 'main')];
    git('update-ref', 'refs/tags/web/v1', main);
    expect(flag((await revisions()).get('web.v1'))).toContain('UnsignedApproval');
    git('update-ref', 'refs/tags/web/v1', web);
    expect(flag((await revisions()).get('web.v1'))).toBeUndefined();

    const adopted = git('rev-parse', 'refs/sluice/adopted');
    const blob = execFileSync('git', ['--git-dir', repository, 'hash-object', '-w', '--stdin'], {
      input: `${main} refs/tags/web/v1\n`,
      encoding: 'utf8',
    }).trim();
    const tree = execFileSync('git', ['--git-dir', repository, 'mktree'], {
      input: `100644 blob ${blob}\tadopted\n`,
      encoding: 'utf8',
    }).trim();
    const message = git('log', '-1', '--format=%B', adopted);
    const identity = ['-c', 'user.name=eve', '-c', 'user.email=eve@example.com'];
    git('update-ref', 'refs/sluice/adopted', git(...identity, 'commit-tree', '-m', message, tree));
    git('update-ref', 'refs/tags/web/v1', main);
    const forged = await revisions();
    expect(flag(forged.get('web.v1'))).toBeDefined();
    expect(flag(forged.get('cache.v1'))).toContain('is not signed');
  });

  test('a push cannot restore an older list', async () => {
    await adoption('--only', 'web/*', '--yes');
    const first = git('rev-parse', 'refs/sluice/adopted');
    await adoption('--yes');
    git('update-ref', 'refs/sluice/adopted', first);
    const shown = await revisions();
    expect(flag(shown.get('web.v1'))).toBeDefined();
    expect(flag(shown.get('cache.v1'))).toBeDefined();
    await adoption('--yes');
    expect(flag((await revisions()).get('web.v1'))).toBeUndefined();
  });
});
