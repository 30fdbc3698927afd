import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { programFolder } from '../../function/external/testing-programs.ts';
import { desired } from '../tree/desired.ts';
import { markFile, readOwner } from '../tree/kustomization.ts';
import { packageBuilder, type RenderPrograms } from './build-package.ts';

const LIMITS = { time: 20_000, outputBytes: 1024 * 1024, memoryBytes: 256 * 1024 * 1024, clock: systemClock };
const MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n';
const KUSTOMIZATION = { 'kustomization.yaml': 'resources: [cm.yaml]\nnamePrefix: a-\n', 'cm.yaml': MAP };
const CHART = { 'Chart.yaml': 'apiVersion: v2\nname: web\nversion: 1.0.0\n', 'templates/cm.yaml': '{{ .Values }}\n' };

const filesOf = (files: Record<string, string>) =>
  new Map(Object.entries({ Kptfile: 'kind: Kptfile\n', ...files }).map(([path, text]) => [path, Buffer.from(text)]));
const build = (
  files: Record<string, string>,
  render: Parameters<ReturnType<typeof packageBuilder>>[1],
  programs: RenderPrograms = {},
) => packageBuilder(programs)({ files: filesOf(files), package: 'net/web' }, render);

test('a package that takes too long is not rendered again for a while, and one namespace runs one program', async () => {
  await using folder = await programFolder();
  const log = join(folder.path, 'runs');
  const program = join(folder.path, 'slow');
  await folder.add('slow', `echo run >> ${log}\nexec /bin/sleep 30`);
  const buildPackage = packageBuilder({ kustomize: { ...LIMITS, time: 100, program } });
  const source = { files: filesOf(KUSTOMIZATION), package: 'net/web', namespace: 'a' };
  const both = await Promise.all([buildPackage(source, 'kustomize'), buildPackage(source, 'kustomize')]);
  expect(both.map(({ isTemporary }) => isTemporary)).toEqual([true, true]);
  expect(both[1]?.refused?.message).toContain('it is tried again 5 minutes after that');
  expect(readFileSync(log, 'utf8')).toBe('run\n');
  await buildPackage({ ...source, files: filesOf({ ...KUSTOMIZATION, 'x.yaml': '' }) }, 'kustomize');
  expect(readFileSync(log, 'utf8')).toBe('run\nrun\n');
});

test('a package that must be rendered is refused without the mode, without the program, and by the wrong mode', async () => {
  expect((await build(KUSTOMIZATION, undefined)).refused).toMatchObject({ reason: 'OwnBuildFile' });
  expect((await build(CHART, 'kustomize')).refused).toMatchObject({
    ...{ reason: 'OwnBuildFile' },
    message: expect.stringContaining('set spec.render: helm on the target (now kustomize), render it'),
  });
  expect((await build(KUSTOMIZATION, 'helm')).refused?.message).toContain(
    'set spec.render: kustomize on the target (now helm)',
  );
  const nested = { 'cm.yaml': MAP, 'base/kustomization.yaml': 'resources: [a.yaml]\n' };
  expect((await build(nested, 'kustomize')).refused?.message).toContain('spec.render applies to a file at the root');
  expect(await build(KUSTOMIZATION, 'kustomize')).toEqual({
    refused: {
      reason: 'RendererMissing',
      message:
        'cannot render the package: the server has no kustomize program; start it with --kustomize <path of the program>',
    },
    isTemporary: true,
  });
  const plain = await build({ 'cm.yaml': MAP }, 'helm');
  expect([...(plain.manifests?.files.keys() ?? [])]).toEqual(['cm.yaml']);
});

test('a program that is away, or whose interpreter is, is missing, and is tried again', async () => {
  await using folder = await programFolder();
  const broken = join(folder.path, 'broken');
  writeFileSync(broken, '#!/nonexistent/shell\n', { mode: 0o755 });
  for (const program of ['/nonexistent', broken])
    expect(await build(KUSTOMIZATION, 'kustomize', { kustomize: { ...LIMITS, program } })).toMatchObject({
      ...{
        refused: { reason: 'RendererMissing', message: expect.stringContaining('name a program with --kustomize') },
      },
      isTemporary: true,
    });
});

test('the program gets the files without the Kptfile, an empty PATH and a folder of its own, which is removed', async () => {
  await using programs = await programFolder();
  await programs.add(
    'kustomize',
    `cd "$2" || exit 9; printf '${MAP.replaceAll('\n', '\\n')}data:\\n  args: "%s"\\n  path: "%s"\\n  files: "%s"\\n' "$1 $3 $4" "$PATH" "$(/bin/ls | /usr/bin/tr '\\n' ' ')"`,
  );
  const before = readdirSync(tmpdir()).filter((name) => name.startsWith(`sluice-exec-${process.pid}-`));
  const { manifests, refused } = await build(KUSTOMIZATION, 'kustomize', {
    kustomize: { ...LIMITS, program: `${programs.path}/kustomize` },
  });
  expect(refused).toBeUndefined();
  const text = Buffer.from(manifests?.files.get('manifests.yaml') ?? []).toString();
  expect(text).toContain('args: build --load-restrictor LoadRestrictionsRootOnly\n');
  expect(text).toContain('path: /nonexistent\n');
  expect(text).toContain('files: "cm.yaml kustomization.yaml "');
  expect([...(manifests?.places.values() ?? [])]).toEqual(['ConfigMap web at manifests.yaml:1']);
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith(`sluice-exec-${process.pid}-`))).toEqual(before);
});

test('remote resources are refused before the program runs', async () => {
  await using programs = await programFolder();
  await programs.add('kustomize', `echo 1 >> ${programs.path}/runs`);
  const remote = { ...KUSTOMIZATION, 'kustomization.yaml': 'resources: ["https://127.0.0.1/x.yaml"]\n' };
  const outcome = await build(remote, 'kustomize', { kustomize: { ...LIMITS, program: `${programs.path}/kustomize` } });
  expect(outcome.refused).toMatchObject({ reason: 'RemoteResource' });
  expect(await programs.pids('runs')).toEqual([]);
});

test('failures are reported in one line, without the folder; output and results are bounded and checked', async () => {
  await using programs = await programFolder();
  const helm = { ...LIMITS, program: `${programs.path}/helm` };
  await programs.add('helm', 'printf "Error: %s/templates/x.yaml:\\n bad \\033[31m value\\n" "$3" >&2; exit 1');
  expect((await build(CHART, 'helm', { helm })).refused).toEqual({
    reason: 'RenderFailed',
    message: 'helm failed: Error: templates/x.yaml: bad [31m value',
  });
  await programs.add('helm', 'while :; do echo 0123456789012345678901234567890123456789; done');
  expect((await build(CHART, 'helm', { helm })).refused).toMatchObject({ reason: 'TooLarge' });
  await programs.add('helm', `printf '${MAP.replaceAll('\n', '\\n')}data: {r: "%s"}\\n' $$`);
  expect((await build(CHART, 'helm', { helm })).refused?.message).toContain('other manifests each time');
  await programs.add('helm', `printf 'kind: Secret\\napiVersion: v1\\nmetadata: {name: s}\\nstringData: {a: b}\\n'`);
  expect((await build(CHART, 'helm', { helm })).manifests?.openSecrets).toEqual(['Secret s at manifests.yaml:1']);
  await programs.add('helm', 'exec /bin/sleep 1000');
  expect(await build(CHART, 'helm', { helm: { ...helm, time: 50 } })).toMatchObject({
    refused: { reason: 'RenderFailed', message: expect.stringContaining('did not end within') },
    isTemporary: true,
  });
  const gone = await build(CHART, 'helm', { helm: { ...helm, program: `${programs.path}/none` } });
  expect(gone.refused).toMatchObject({ reason: 'RendererMissing' });
});

test('with passthrough the files are delivered as they are, with the owner in the first line of the build file', async () => {
  for (const [files, buildFile] of [
    [KUSTOMIZATION, 'kustomization.yaml'],
    [CHART, 'Chart.yaml'],
    [{ Kustomization: 'resources: [cm.yaml]\n', 'cm.yaml': MAP }, 'Kustomization'],
  ] as const) {
    const built = await build(files, 'passthrough');
    const revision = {
      ...{ repository: 'apps', package: 'net/web', revision: 2, sourceCommit: 'c', sourceTree: 't', gates: [] },
      built,
    };
    const target = {
      name: 'edge',
      directory: '/',
      onRemoval: 'delete',
      allowSecrets: false,
      allowOutOfBand: false,
    } as const;
    const { edits, refused } = desired(target, [revision], new Map());
    expect(refused).toEqual([]);
    const folder = new Map([...edits].map(([path, data]) => [path.slice('net/web/'.length), data ?? Buffer.alloc(0)]));
    expect([...folder.keys()]).toEqual(Object.keys(files).sort());
    for (const [path, text] of Object.entries(files)) {
      const data = Buffer.from(folder.get(path) ?? []).toString();
      expect(path === buildFile ? data.slice(data.indexOf('\n') + 1) : data).toBe(text);
    }
    expect(readOwner(folder.get(buildFile) ?? Buffer.alloc(0))).toMatchObject({ package: 'net/web', revision: 2 });
    // A second delivery finds it in place.
    const { blobIdOf } = await import('../tree/desired-file.ts');
    const present = new Map(
      [...edits].map(([path, data]) => [
        path,
        { oid: blobIdOf(data ?? Buffer.alloc(0)), data: data ?? Buffer.alloc(0) },
      ]),
    );
    expect(desired(target, [revision], present).edits.size).toBe(0);
    // A removed package leaves nothing behind.
    const gone = desired({ ...target, allowPrune: true }, [], present).edits;
    expect([...gone.values()].every((data) => data === null)).toBe(true);
    expect(gone.size).toBe(edits.size);
  }
});

test('passthrough finds Secrets that are written in files', async () => {
  const secrets = async (files: Record<string, string>) => (await build(files, 'passthrough')).manifests?.openSecrets;
  const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n';
  expect(await secrets({ ...KUSTOMIZATION, 's.yaml': secret })).toEqual(['Secret s at s.yaml:1']);
  expect(await secrets({ ...CHART, 'templates/s.yaml': `{{ if true }}\n${secret}{{ end }}\n` })).toEqual([
    'a Secret at templates/s.yaml',
  ]);
  expect(await secrets({ 'kustomization.yaml': 'secretGenerator: [{name: a, literals: [a=b]}]\n' })).toEqual([
    'the secretGenerator at kustomization.yaml',
  ]);
  expect(await secrets(KUSTOMIZATION)).toEqual([]);
});

test.each([
  ['in other case', { 'kustomization.yaml': 'SecretGenerator: [{name: a, literals: [p=x]}]\n' }, 'the secretGenerator'],
  [
    'with an escape',
    { 's.yaml': 'apiVersion: v1\n"kin\\x64": Secret\nmetadata: {name: s}\nstringData: {a: b}\n' },
    'Secret s',
  ],
  [
    'with a tag',
    { 's.yaml': 'apiVersion: v1\nkind: !!str Secret\nmetadata: {name: s}\nstringData: {a: b}\n' },
    'Secret s',
  ],
  [
    'in a file of another name',
    { 's.txt': 'apiVersion: v1\n"kind" : "Secret"\nmetadata: {name: s}\nstringData: {a: b}\n' },
    'Secret s',
  ],
  [
    'in JSON',
    { 's.json': '{"apiVersion":"v1","kind":"Sec\\u0072et","metadata":{"name":"s"},"data":{"a":"Yg=="}}' },
    'Secret s',
  ],
])('passthrough finds a Secret that is written %s', async (_, files, found) => {
  const { manifests } = await build({ ...KUSTOMIZATION, ...files }, 'passthrough');
  expect(manifests?.openSecrets).toEqual([expect.stringContaining(found)]);
});

test.each([
  [{ 'kustomization.yaml': 'resources: ["https://evil.example/x.yaml"]\n' }, 'nothing is fetched'],
  [{ 'base/kustomization.yaml': 'Bases: ["github.com/evil/base"]\n' }, 'nothing is fetched'],
  [{ '.argocd-source.yaml': 'kustomize: {images: [a=b]}\n' }, 'Argo CD'],
  [{ '.argocd-source-edge.yaml': 'helm: {}\n' }, 'Argo CD'],
])('passthrough refuses what can change after the approval: %j', async (files, message) => {
  expect((await build({ ...KUSTOMIZATION, ...files }, 'passthrough')).refused).toMatchObject({
    reason: 'RemoteResource',
    message: expect.stringContaining(message),
  });
});

test('passthrough refuses the mark of an owner below the root of a package', async () => {
  const owner = { target: 'other', repository: 'apps', package: 'web' };
  const marked = markFile(owner, Buffer.from('resources: []\n'));
  const refused = {
    reason: 'InvalidManifest',
    message: expect.stringContaining('base/kustomization.yaml has the mark'),
  };
  const files = { ...KUSTOMIZATION, 'base/kustomization.yaml': Buffer.from(marked).toString() };
  expect((await build(files, 'passthrough')).refused).toMatchObject(refused);
});
