import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { skipFor } from '../../../test/support/skip.ts';
import type { TargetSettings } from '../delivery-target.ts';
import type { PresentFile } from './branch-files.ts';
import { desired, desiredInSteps } from './desired.ts';
import type { Desired, DesiredRevision } from './desired-result.ts';
import { manifestsOf } from './manifests.ts';
import { readMessage } from './trailers.ts';

// Optional: the test is skipped with a reason where it is not installed.
const KUBECTL = 'kubectl';

type Branch = Map<string, Uint8Array>;

function target(more: Partial<TargetSettings> = {}, name = 'edge'): TargetSettings {
  const defaults = { onRemoval: 'empty', allowSecrets: false, allowOutOfBand: false, allowPrune: true } as const;
  return { name, directory: '/clusters/edge', ...defaults, ...more };
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function revision(
  path: string,
  files: Record<string, string> = {},
  more: Partial<DesiredRevision> = {},
): DesiredRevision {
  const data = new Map(Object.entries(files).map(([name, text]) => [name, bytes(text)]));
  return {
    repository: 'packages',
    package: path,
    revision: 1,
    sourceCommit: 'c'.repeat(40),
    sourceTree: 'd'.repeat(40),
    gates: [],
    built: manifestsOf(data),
    ...more,
  };
}

const app = (name = 'a'): Record<string, string> => ({
  'app.yaml': `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n`,
});

function present(branch: Branch): Map<string, PresentFile> {
  return new Map(
    [...branch].map(([path, data]) => {
      const oid = createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex');
      return [path, path.endsWith('kustomization.yaml') ? { oid, data } : { oid }];
    }),
  );
}

function apply(branch: Branch, { edits }: Desired): Branch {
  const after = new Map(branch);
  for (const [path, data] of edits) {
    if (data === null) after.delete(path);
    else after.set(path, data);
  }
  return after;
}

function deliver(revisions: readonly DesiredRevision[], to = target(), branch: Branch = new Map()): Branch {
  return apply(branch, desired(to, revisions, present(branch)));
}

function texts(branch: Branch): Record<string, string> {
  return Object.fromEntries([...branch].map(([path, data]) => [path, new TextDecoder().decode(data)]));
}

function list(path: string, resources: string, name = 'edge', repository = 'packages'): string {
  return `# Written by Sluice; changes here are overwritten. ["${name}","${repository}","${path}",1]\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:${resources}\n`;
}

describe('the written tree', () => {
  test('a folder for each package with its files and their list', () => {
    const files: Record<string, string> = {
      'b/z.yaml': app('z')['app.yaml'] ?? '',
      'b.yaml': app('b')['app.yaml'] ?? '',
      ...app(),
    };
    expect(texts(deliver([revision('net/upf', files)]))).toEqual({
      'clusters/edge/net/upf/app.yaml': files['app.yaml'],
      'clusters/edge/net/upf/b.yaml': files['b.yaml'],
      'clusters/edge/net/upf/b/z.yaml': files['b/z.yaml'],
      'clusters/edge/net/upf/kustomization.yaml': list('net/upf', '\n- app.yaml\n- b.yaml\n- b/z.yaml'),
    });
  });

  test('the computation pauses after each package that is delivered or removed, also where there are thousands', () => {
    const all = Array.from({ length: 3000 }, (_, at) => revision(`p${at}`, { 'README.md': 'x' }));
    const branch = deliver(all);
    const steps = desiredInSteps(target({ onRemoval: 'delete' }), all.slice(0, 1000), present(branch));
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) pauses += 1;
    expect(pauses).toBeGreaterThanOrEqual(3000);
    expect([...step.value.edits.values()].filter((data) => data === null)).toHaveLength(2000);
  });

  test('a package without objects has an empty list', () => {
    expect(texts(deliver([revision('empty', { 'README.md': 'x' })], target({ directory: '/' })))).toEqual({
      'empty/kustomization.yaml': list('empty', ' []'),
    });
  });

  test('unchanged packages cause no edits, and the message names only changed ones', () => {
    const gates = [{ type: 'a/b.C.d', status: 'True', by: 'resolver, ipam' }] as const;
    const [one, two] = [
      revision('one', app()),
      revision('two', app(), { revision: 7, gates, outOfBand: 'pushed = x' }),
    ];
    const to = target({ allowOutOfBand: true });
    const branch = deliver([one], to);
    const again = desired(to, [one], present(branch));
    expect([again.edits.size, again.message]).toEqual([0, '']);
    const both = desired(to, [two, one], present(branch));
    expect(both.packages.map(({ folder, changed }) => [folder, changed])).toEqual([
      ['clusters/edge/one', false],
      ['clusters/edge/two', true],
    ]);
    expect(both.message).toBe(
      'Deliver two v7\n\nSluice-Target: edge\nSluice-Package: packages/two\nSluice-Revision: v7\n' +
        `Sluice-Source-Commit: ${two.sourceCommit}\nSluice-Source-Tree: ${two.sourceTree}\n` +
        'Sluice-Gates: a/b.C.d=True by resolver%2C%20ipam\nSluice-Out-Of-Band: pushed%20%3D%20x\n',
    );
    const { built: _, ...delivered } = two;
    expect(readMessage(both.message)).toEqual({ delivered: [delivered], removed: [] });
  });

  test('a file counts as present by the id that git gives it', () => {
    const branch = deliver([revision('one', { 'app.yaml': `${app()['app.yaml']}data:\n  a: é\n` })]);
    const known = [...branch].map(([path, data]): [string, PresentFile] => {
      const oid = execFileSync('git', ['hash-object', '--stdin'], { input: data, encoding: 'utf8' }).trim();
      return [path, { oid, data }];
    });
    const { edits } = desired(target(), [revision('one', app())], new Map(known));
    expect([...edits.keys()]).toEqual(['clusters/edge/one/app.yaml']);
  });

  test('files that the revision no longer has, or that a user added, are removed', () => {
    const branch = deliver([revision('one', { ...app(), 'old.yaml': app('old')['app.yaml'] ?? '' })]);
    branch.set('clusters/edge/one/stray.yaml', bytes('x: y'));
    expect([...deliver([revision('one', app())], target(), branch).keys()].sort()).toEqual([
      'clusters/edge/one/app.yaml',
      'clusters/edge/one/kustomization.yaml',
    ]);
  });
});

describe('removal', () => {
  const branch = deliver([revision('keep', app()), revision('net/gone', app())]);

  test('"empty" leaves an empty list, once', () => {
    const result = desired(target(), [revision('keep', app())], present(branch));
    expect(result.message).toBe('Remove net/gone\n\nSluice-Target: edge\nSluice-Removed: packages/net/gone\n');
    expect(readMessage(result.message).removed).toEqual([{ repository: 'packages', package: 'net/gone' }]);
    const after = apply(branch, result);
    expect(texts(after)['clusters/edge/net/gone/kustomization.yaml']).toBe(list('net/gone', ' []'));
    expect(after.has('clusters/edge/net/gone/app.yaml')).toBe(false);
    expect(desired(target(), [revision('keep', app())], present(after)).edits.size).toBe(0);
  });

  test('"delete" removes the folder, an emptied one too', () => {
    const to = target({ onRemoval: 'delete' });
    const after = deliver([revision('keep', app())], to, branch);
    expect([...after.keys()]).toEqual(['clusters/edge/keep/app.yaml', 'clusters/edge/keep/kustomization.yaml']);
    expect(deliver([], to, deliver([], target(), branch)).size).toBe(0);
  });

  test('of the last package requires allowPrune', () => {
    const careful = target({ allowPrune: false });
    const result = desired(careful, [], present(branch));
    expect([result.edits.size, result.pruneBlocked]).toEqual([0, ['clusters/edge/keep', 'clusters/edge/net/gone']]);
    expect(desired(careful, [revision('keep', app())], present(branch)).edits.size).toBeGreaterThan(0);
    const refused = desired(careful, [revision('keep', { 'a.yaml': 'a: [' })], present(branch));
    expect([refused.edits.size > 0, refused.pruneBlocked]).toEqual([true, []]);
    expect(desired(careful, [], present(deliver([], target(), branch))).pruneBlocked).toEqual([]);
  });

  test('files of others stay: of other targets, of users, copies of folders, and files outside of the directory', () => {
    const other = deliver([revision('theirs', app())], target({}, 'other'), branch);
    other.set('clusters/edge/human/app.yaml', bytes('x'));
    other.set('clusters/edge/copy/kustomization.yaml', other.get('clusters/edge/keep/kustomization.yaml') ?? bytes(''));
    other.set('clusters/west/keep/kustomization.yaml', other.get('clusters/edge/keep/kustomization.yaml') ?? bytes(''));
    const after = deliver([], target({ onRemoval: 'delete' }), other);
    expect([...after.keys()].sort()).toEqual([
      'clusters/edge/copy/kustomization.yaml',
      'clusters/edge/human/app.yaml',
      'clusters/edge/theirs/app.yaml',
      'clusters/edge/theirs/kustomization.yaml',
      'clusters/west/keep/kustomization.yaml',
    ]);
  });

  test('folders from a repository that cannot be read stay', () => {
    const unreadable = new Set(['packages']);
    expect(desired(target(), [], present(branch), unreadable).edits.size).toBe(0);
    const rival = revision('keep', app(), { repository: 'rival' });
    expect(desired(target(), [rival], present(branch), unreadable).refused).toMatchObject([
      { reason: 'ForeignFolder', message: expect.stringContaining('whose repository cannot be read at present') },
    ]);
    expect(desired(target(), [rival], present(branch)).refused).toEqual([]);
  });

  test.each(['empty', 'delete'] as const)('a package may move into or out of its own folder (%s)', (onRemoval) => {
    const to = target({ onRemoval });
    const outer = revision('a', { ...app(), 'b/app.yaml': app('b')['app.yaml'] ?? '' });
    const inner = revision('a/b', app('b'));
    const moved = deliver([inner], to, deliver([outer], to));
    expect([...moved.keys()].sort()).toEqual(['clusters/edge/a/b/app.yaml', 'clusters/edge/a/b/kustomization.yaml']);
    expect(desired(to, [inner], present(moved)).edits.size).toBe(0);
    const back = deliver([outer], to, moved);
    expect(texts(back)).toEqual(texts(deliver([outer], to)));
    expect(desired(to, [outer], present(back)).edits.size).toBe(0);
  });
});

describe('refusals', () => {
  function reasons(revisions: readonly DesiredRevision[], to = target(), branch: Branch = new Map()): unknown[] {
    return desired(to, revisions, present(branch)).refused.map((item) => [item.package, item.reason, item.message]);
  }

  test('a refused package leaves its folder as it was', () => {
    const branch = deliver([revision('one', app())]);
    const bad = revision('one', { 'a.yaml': 'a: [' }, { revision: 2 });
    const result = desired(target(), [bad], present(branch));
    expect(result.edits.size).toBe(0);
    expect(result.refused).toMatchObject([{ package: 'one', revision: 2, reason: 'InvalidManifest' }]);
  });

  test('an open Secret, unless the target allows it', () => {
    const secret = { 's.yaml': 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n' };
    const [refusal] = reasons([revision('one', secret)]);
    expect(refusal).toEqual(['one', 'UnencryptedSecret', expect.stringContaining('Secret s at s.yaml:1')]);
    expect(JSON.stringify(refusal)).not.toContain('hunter2');
    expect(reasons([revision('one', secret)], target({ allowSecrets: true }))).toEqual([]);
  });

  test('an out-of-band publication, unless the target allows it', () => {
    const outOfBand = revision('one', app(), { outOfBand: 'tag pushed by git' });
    expect(reasons([outOfBand])).toEqual([['one', 'OutOfBand', expect.stringContaining('(tag pushed by git)')]]);
    expect(reasons([outOfBand], target({ allowOutOfBand: true }))).toEqual([]);
  });

  test('one folder for two packages, or one inside another: all of them, no other package', () => {
    const all = [
      revision('same', app()),
      revision('same', app(), { repository: 'rival' }),
      revision('out', app()),
      revision('out/in/deep', app()),
      revision('out-side', app()),
    ];
    expect(reasons(all)).toEqual([
      [
        'out',
        'AmbiguousFolder',
        expect.stringContaining('with clusters/edge/out/in/deep of package packages/out/in/deep'),
      ],
      ['out/in/deep', 'AmbiguousFolder', expect.stringContaining('with clusters/edge/out of package packages/out v1')],
      ['same', 'AmbiguousFolder', expect.stringContaining('of package rival/same')],
      ['same', 'AmbiguousFolder', expect.stringContaining('of package packages/same')],
    ]);
    expect([...deliver(all).keys()]).toEqual([
      'clusters/edge/out-side/app.yaml',
      'clusters/edge/out-side/kustomization.yaml',
    ]);
  });

  test.each(['../up', '/abs', '', 'x/.git', 'a\nSluice-Package: evil'])('package path %j', (path) => {
    expect(reasons([revision(path, app())])).toMatchObject([[path, 'InvalidPath', expect.anything()]]);
    expect(deliver([revision(path, app())]).size).toBe(0);
  });

  test('folders of others', () => {
    const human = new Map([['clusters/edge/one/app.yaml', bytes('x')]]);
    expect(reasons([revision('one', app())], target(), human)).toEqual([
      ['one', 'ForeignFolder', expect.stringContaining('clusters/edge/one/app.yaml was not written by Sluice')],
    ]);
    const file = new Map([['clusters/edge/one', bytes('x')]]);
    expect(reasons([revision('one/two', app())], target(), file)).toEqual([
      ['one/two', 'ForeignFolder', expect.stringContaining('clusters/edge/one is a file')],
    ]);
    const other = deliver([revision('one', app())], target({}, 'other'));
    for (const path of ['one', 'one/two'])
      expect(reasons([revision(path, app())], target(), other)).toEqual([
        [path, 'ForeignFolder', expect.stringContaining('for package packages/one of target other')],
      ]);
    const inside = deliver([revision('one/two', app())], target({}, 'other'));
    expect(reasons([revision('one', app())], target(), inside)).toEqual([
      ['one', 'ForeignFolder', expect.stringContaining('for package packages/one/two of target other')],
    ]);
  });

  test.each(['../x', '/a/../b', '.git', 'a\nb'])('directory %j', (directory) => {
    expect(() => desired(target({ directory }), [], new Map())).toThrow('spec.git.directory');
  });
});

describe('for any packages', () => {
  const paths = fc.constantFrom('a', 'a/b', 'b', 'c/d', 'c', 'e', '../x');
  const contents = fc.constantFrom<Record<string, string>>(
    app('x'),
    { ...app('y'), 'sub/more.yaml': app('z')['app.yaml'] ?? '' },
    { 'README.md': 'nothing' },
    { ...app('y'), 'b/app.yaml': app('z')['app.yaml'] ?? '', 'd/other.yaml': app('o')['app.yaml'] ?? '' },
    { 'a.yaml': 'broken: [' },
  );
  const packages = fc.uniqueArray(
    fc
      .record({
        path: paths,
        files: contents,
        number: fc.integer({ min: 1, max: 9 }),
        repository: fc.constantFrom('p', 'q'),
      })
      .map(({ path, files, number, repository }) => revision(path, files, { revision: number, repository })),
    { selector: (item) => `${item.repository}/${item.package}`, maxLength: 6 },
  );
  const settings = fc.record({
    onRemoval: fc.constantFrom('empty' as const, 'delete' as const),
    directory: fc.constantFrom('/', 'k8s'),
    allowPrune: fc.boolean(),
  });

  test('edits settle at once, and the order of revisions does not matter', () => {
    fc.assert(
      fc.property(fc.array(packages, { minLength: 1, maxLength: 4 }), settings, (rounds, options) => {
        const to = target(options);
        let branch: Branch = new Map();
        for (const revisions of rounds) {
          const result = desired(to, revisions, present(branch));
          const reversed = desired(to, revisions.toReversed(), present(new Map([...branch].reverse())));
          expect(reversed).toEqual(result);
          expect([...reversed.edits.keys()]).toEqual([...result.edits.keys()]);
          expect(result.message === '').toBe(result.edits.size === 0);
          branch = apply(branch, result);
          const again = desired(to, revisions, present(branch));
          expect([...again.edits.keys()]).toEqual([]);
          expect(again.refused).toEqual(result.refused);
        }
      }),
      { numRuns: runs(300) },
    );
  });
});

describe('kustomize', () => {
  const available = spawnSync(KUBECTL, ['kustomize', '--help'], { stdio: 'ignore' }).status === 0;

  test(
    'builds a delivered folder, and an emptied one',
    skipFor(!available && 'there is no kubectl with kustomize'),
    () => {
      const data = 'data:\n  a: "yes"\n  b: "010"\n  c: "1e3"\n  d: "12345678901234567890"\n  e: |\n    x\n      y\n';
      const files = {
        'one.yaml': `${app()['app.yaml']}${data}`,
        'sub/{odd} name, #1.json':
          '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}, "data": {"é": "\\u2028"}}',
      };
      const folder = mkdtempSync(join(tmpdir(), 'sluice-delivery-'));
      try {
        const build = (branch: Branch): string => {
          for (const [path, content] of branch) {
            mkdirSync(dirname(join(folder, path)), { recursive: true });
            writeFileSync(join(folder, path), content);
          }
          return execFileSync(KUBECTL, ['kustomize', join(folder, 'clusters/edge/one')], { encoding: 'utf8' });
        };
        const branch = deliver([revision('one', files)]);
        const built = build(branch);
        expect(built).toContain(`apiVersion: v1\n${data}kind: ConfigMap\nmetadata:\n  name: a\n`);
        expect(built).toContain('name: j');
        rmSync(join(folder, 'clusters'), { recursive: true });
        expect(build(deliver([], target(), branch))).toBe('');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
