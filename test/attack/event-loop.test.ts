import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { type Answer, APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { FILES, filled, JSON_BODIES, JSON_BODIES_AT_LIMIT, KPTFILES, YAML_BODIES } from './support/hostile-inputs.ts';
import type { LongestTurn } from './support/loop-monitor.ts';

/**
 * No input of a mebibyte holds up the event loop for more than 50 ms. Measured is the processor time of code in the longest turn, without
 * the collection of garbage (`support/loop-monitor.ts` says why); SLUICE_SHOW_TURNS=1 prints both for each input. The shortest of some
 * tries counts, at least two, as the first may compile code. What is asserted is four times as much: caches shared with other processes
 * slow a turn down too, and what is quadratic is beyond that by far, each time.
 */
const MAX_TURN_MS = 50;
const MULTIPLE = 4;
const TRIES = { least: 2, most: 6 };

const MAPS = '/api/v1/namespaces/default/configmaps';
const PORCH = '/apis/porch.kpt.dev/v1alpha1/namespaces/default';
const REPOSITORY = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const THINGS = '/apis/hostile.example.com/v1/namespaces/default/things';
const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles';

let folder: string;
let up: RunningUp;
const figures: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-loop-'));
  const monitor = fileURLToPath(new URL('support/loop-monitor.ts', import.meta.url));
  const environment = { NODE_OPTIONS: `--import ${monitor}`, SLUICE_LOOP_MONITOR: join(folder, 'monitor') };
  up = await RunningUp.start(join(folder, 'data'), { environment });
  expect((await up.api.post(MAPS, { metadata: { name: 'live' }, data: { a: 'b' } })).status).toBe(201);
});

afterAll(async () => {
  if (process.env.SLUICE_SHOW_TURNS !== undefined) process.stdout.write(`${figures.join('\n')}\n`);
  expect(up.ownFailures()).toEqual([]);
  expect(await up.end()).toBe(0);
  await rm(folder, { recursive: true });
});

/** The longest turn of the server's event loop since the last call. */
function longestTurn(): Promise<LongestTurn> {
  return new Promise((resolve, reject) => {
    const socket = connect(join(folder, 'monitor'));
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('end', () => resolve(JSON.parse(text) as LongestTurn)).on('error', reject);
  });
}

/** Sends an input at least twice; it must be answered for, and one of the turns must be short enough. */
async function measured(name: string, send: () => Promise<Answer>): Promise<void> {
  const turns: LongestTurn[] = [];
  let status = 0;
  const shortest = () => Math.min(...turns.map((turn) => turn.codeMs));
  while (turns.length < TRIES.least || (turns.length < TRIES.most && shortest() >= MULTIPLE * MAX_TURN_MS)) {
    await longestTurn();
    ({ status } = await send());
    turns.push(await longestTurn());
  }
  const codeMs = shortest();
  const garbageMs = Math.min(...turns.map((turn) => turn.garbageMs));
  figures.push(`${padded(codeMs)} ms, garbage ${padded(garbageMs)} ms  ${status}  ${name}`);
  expect(status, name).toBeLessThan(500);
  expect(codeMs, name).toBeLessThan(MULTIPLE * MAX_TURN_MS);
}

const padded = (milliseconds: number) => milliseconds.toFixed(0).padStart(5);

const sent = (method: string, path: string, body: string, type: string) => () =>
  up.api.send(method, path, { body, headers: { 'content-type': type } });

/** A list as JSON. */
const items = (count: number, item: (index: number) => unknown) => Array.from({ length: count }, (_, i) => item(i));

test.each([...Object.entries(JSON_BODIES), ...Object.entries(JSON_BODIES_AT_LIMIT)])(
  'an object in JSON: %s',
  async (name, body) => {
    await measured(
      `create, ${name}`,
      sent('POST', `${MAPS}?dryRun=All&fieldValidation=Strict`, body, 'application/json'),
    );
    const live = body.replace('"hostile"', '"live"');
    for (const type of [MERGE_PATCH, STRATEGIC_PATCH])
      await measured(`${type}, ${name}`, sent('PATCH', `${MAPS}/live?dryRun=All`, live, type));
    const applied = body.replace('{"metadata"', '{"apiVersion":"v1","kind":"ConfigMap","metadata"');
    await measured(
      `apply, ${name}`,
      sent('PATCH', `${MAPS}/live?dryRun=All&fieldManager=x&force=true`, applied, APPLY_PATCH),
    );
  },
);

test.each(Object.entries(YAML_BODIES))('an object in YAML: %s', async (name, body) => {
  await measured(`create, YAML, ${name}`, sent('POST', `${MAPS}?dryRun=All`, body, 'application/yaml'));
});

test.each([
  ['lists that double', '[[1, 2]]', '.map(a, a + a)', '.map(a, string(3 in a))[0]'],
  ['a text that doubles', "['text']", '.map(a, a + a)', '.map(a, string(a.size()))[0]'],
  ['lists in lists', '[1]', '.map(a, [a, a])', ' == [2] ? "a" : "b"'],
  ['a text that is repeated in a pattern', "'a'.matches('(", 'ab'.repeat(25), "){1000}') ? 'a' : 'b'"],
  ['wide classes of a pattern', "'a'.matches(r'(?i)", '[b-\\x{1e942}]', "') ? 'a' : 'b'"],
  ['a pattern as large as is permitted', "'a'.matches('(?:", 'a?', "){25}') ? 'a' : 'b'"],
])('expressions of a template: %s', async (name, seed, step, end) => {
  const targets = [{ repositories: [{ name: 'x' }], template: { labelExprs: [{ key: 'a', valueExpr: '' }] } }];
  const sets = '/apis/config.porch.kpt.dev/v1alpha2/namespaces/default/packagevariantsets?dryRun=All';
  await measured(`template, ${name}`, () => {
    const [{ template }] = targets as [(typeof targets)[number]];
    template.labelExprs = [{ key: 'a', valueExpr: `${seed}${step.repeat(24)}${end}` }];
    return up.api.post(sets, { metadata: { name: 'a' }, spec: { upstream: { repo: 'a', package: 'b' }, targets } });
  });
});

test('JSON patches', async () => {
  const patch = (name: string, operations: readonly unknown[]) =>
    measured(`JSON patch, ${name}`, sent('PATCH', `${MAPS}/live?dryRun=All`, JSON.stringify(operations), JSON_PATCH));
  await patch(
    'many',
    items(60_000, () => ({ op: 'test', path: '/data/a', value: 'b' })),
  );
  await patch(
    'adds',
    items(9900, (i) => ({ op: 'add', path: `/data/k${i}`, value: '' })),
  );
  await patch('adds in front', [
    { op: 'add', path: '/metadata/finalizers', value: [] },
    ...items(9900, (i) => ({ op: 'add', path: '/metadata/finalizers/0', value: `a/b${i}` })),
  ]);
  await patch(
    'copies',
    items(9900, (i) => ({ op: 'copy', from: '/metadata', path: `/data/k${i}` })),
  );
  await patch('a long path', [{ op: 'add', path: '/a'.repeat(500_000), value: 1 }]);
});

describe('kinds that users define', () => {
  const definition = (group: string, spec: object) => ({
    metadata: { name: `things.${group}` },
    spec: {
      ...{ group, scope: 'Namespaced', names: { plural: 'things', kind: 'Thing' } },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  });
  const rules = (texts: readonly unknown[]) => ({
    type: 'object',
    properties: { a: { type: 'integer' } },
    'x-kubernetes-validations': texts.map((rule) => ({ rule })),
  });
  let attempt = 0;

  test('definitions', async () => {
    const fields = Object.fromEntries(items(9000, (i) => [`p${i}`, { type: 'string' }]) as [string, object][]);
    const patterns = Object.fromEntries(
      items(3000, (i) => [`p${i}`, { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' }]) as [string, object][],
    );
    const cases: Record<string, () => object> = {
      'many fields': () => ({ type: 'object', properties: fields }),
      'many patterns': () => ({ type: 'object', properties: patterns }),
      'a long pattern': () => ({ type: 'string', pattern: '(a|b)*'.repeat(100_000) }),
      'many rules': () => rules(items(5000, (i) => `self.a > ${i + attempt * 10_000}`)),
      'long rules': () => rules(items(200, (i) => `self.a${' + self.a'.repeat(80)} > ${i + attempt * 10_000}`)),
      'an endless rule': () => rules(['('.repeat(500_000)]),
    };
    for (const [name, spec] of Object.entries(cases))
      await measured(`definition, ${name}`, () => {
        attempt += 1;
        return up.api.post(`${DEFINITIONS}?dryRun=All`, definition('other.example.com', spec()));
      });
  });

  test('objects', async () => {
    const list = (type: string, more: object) => ({ type: 'array', items: { type }, ...more });
    const spec = {
      type: 'object',
      properties: {
        text: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' },
        set: list('string', { 'x-kubernetes-list-type': 'set' }),
        map: {
          ...{ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' }, a: { type: 'string' } },
          },
        },
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        squared: list('integer', { 'x-kubernetes-validations': [{ rule: 'self.all(a, self.exists(b, a == b))' }] }),
      },
    };
    const made = await up.api.post(DEFINITIONS, definition('hostile.example.com', spec));
    expect(made.status, made.text).toBe(201);
    await eventually(
      () => up.api.get(THINGS),
      ({ status }) => status === 200,
    );
    const map = (a: string, count = 2600) => items(count, (i) => ({ name: `n${i}`, a }));
    const create = (name: string, value: object) =>
      measured(`thing, ${name}`, () => up.api.post(`${THINGS}?dryRun=All`, { metadata: { name: 'a' }, spec: value }));
    const apply = (name: string, manager: string, value: object, more = '') =>
      measured(`apply thing, ${name}`, () =>
        up.api.apply(
          `${THINGS}/b`,
          manager,
          { apiVersion: 'hostile.example.com/v1', kind: 'Thing', spec: value },
          more,
        ),
      );
    await create('a set', { set: items(7900, (i) => `s${i}`) });
    await create('a map', { map: map('x') });
    await create('many fields', { any: Object.fromEntries(items(7900, (i) => [`k${i}`, i]) as [string, number][]) });
    await create('a text for a pattern', { text: `${'a'.repeat(900_000)}!` });
    await create('a text for a pattern, as long as is judged', { text: `${'a'.repeat(65_000)}!` });
    await create('a rule that is quadratic', { squared: items(7900, (i) => i) });
    await apply('first manager', 'x', { map: map('x'), set: ['a'] });
    await apply('second manager', 'y', { map: map('x'), set: ['b'] });
    await apply('conflict', 'z', { map: map('y') });
    await apply('force', 'z', { map: map('y') }, '&force=true&dryRun=All');
  });
});

test('roles, reviews and selectors', async () => {
  const rule = (i: number) => ({ apiGroups: [`g${i}`], resources: [`r${i}`], verbs: ['get'] });
  const dry = `${ROLES}?dryRun=All`;
  await measured('role, many rules', () => up.api.post(dry, { metadata: { name: 'r' }, rules: items(700, rule) }));
  const words = items(2600, (i) => `w${i}`);
  const wide = [{ apiGroups: words, resources: words, verbs: words }];
  await measured('role, wide', () => up.api.post(dry, { metadata: { name: 'r' }, rules: wide }));
  const review = { spec: { user: 'x', groups: items(60_000, (i) => `g${i}`), resourceAttributes: { verb: 'get' } } };
  await measured('review', () => up.api.post('/apis/authorization.k8s.io/v1/subjectaccessreviews', review));
  const query = (name: string, text: string) =>
    measured(`selector, ${name}`, () => up.api.get(`/api/v1/configmaps?${name}=${encodeURIComponent(text)}`));
  await query('labelSelector', items(4500, (i) => `k${i}!=v`).join(','));
  await query('labelSelector', `k in (${items(7000, (i) => `v${i}`).join(',')})`);
  await query('fieldSelector', items(2000, (i) => `metadata.name!=${i}`).join(','));
  const gates = items(2500, (i) => ({ conditionType: `t${i}` }));
  await measured('policy', () =>
    up.api.post('/apis/sluice.dev/v1alpha1/namespaces/default/packagepolicies?dryRun=All', {
      metadata: { name: 'p' },
      spec: { requiredGates: gates },
    }),
  );
});

describe('packages', { timeout: 300_000 }, () => {
  const OBJECT_CONDITION = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\nstatus:\n  conditions:\n  - type: a.b/v1.Thing.a\n    status: "True"\n`;
  const work = () => join(folder, 'work');
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=m', '-c', 'user.email=m@example.com', '-C', work(), ...words], {
      stdio: 'pipe',
    });
  let number = 0;

  beforeAll(async () => {
    const repo = join(folder, 'packages.git');
    execFileSync('git', ['init', '-q', '--bare', '-b', 'main', repo]);
    execFileSync('git', ['clone', '-q', repo, work()], { stdio: 'ignore' });
    await writeFile(join(work(), 'README.md'), 'packages\n');
    git('checkout', '-q', '-B', 'main');
    git('add', '.');
    git('commit', '-q', '-m', 'start');
    git('push', '-q', 'origin', 'main');
    const spec = { type: 'git', git: { repo, branch: 'main' } };
    expect((await up.api.post(REPOSITORY, { metadata: { name: 'packages' }, spec })).status).toBe(201);
    await eventually(
      () => up.api.get(`${REPOSITORY}/packages`),
      ({ text }) => text.includes('"True"'),
    );
  });

  /** Writes files into a new draft over the API. */
  async function written(
    files: Readonly<Record<string, string>>,
    binaryResources?: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    number += 1;
    const task = { type: 'init', init: { description: 'x' } };
    const spec = { repository: 'packages', packageName: `p${number}`, workspaceName: 'v1', tasks: [task] };
    const made = await up.api.post(`${PORCH}/packagerevisions`, { metadata: { namespace: 'default' }, spec });
    const path = `${PORCH}/packagerevisionresources/${made.body.metadata.name}`;
    const live = (await up.api.get<{ readonly spec: { readonly resources: object } }>(path)).body;
    await longestTurn();
    const resources = { ...live.spec.resources, ...files };
    const binary = binaryResources === undefined ? {} : { binaryResources };
    const answer = await up.api.put(path, { ...live, spec: { ...live.spec, resources, ...binary } });
    return answer.status === 409 ? written(files, binaryResources) : answer;
  }

  test.each(['texts', 'binary files'])('deep paths of %s', async (kind) => {
    const deep = Object.fromEntries(items(250, (i) => [`${i}/${'a/'.repeat(1900)}x`, '']) as [string, string][]);
    const broad = Object.fromEntries(items(200, (i) => [`${i}/${'a/'.repeat(95)}x`, '']) as [string, string][]);
    for (const [name, files] of Object.entries({ deep, broad }))
      await measured(`${name} paths, ${kind}`, () => (kind === 'texts' ? written(files) : written({}, files)));
  });

  /** Pushes files as a new draft, and waits until it is shown. */
  async function pushed(files: Readonly<Record<string, string>>, message = 'x'): Promise<Answer> {
    number += 1;
    const branch = `drafts/p${number}/v1`;
    git('checkout', '-q', '-b', branch, 'origin/main');
    await mkdir(join(work(), `p${number}`));
    for (const [path, text] of Object.entries(files)) await writeFile(join(work(), `p${number}`, path), text);
    await writeFile(join(folder, 'message'), message);
    git('add', '.');
    git('commit', '-q', '-F', join(folder, 'message'));
    git('push', '-q', 'origin', branch);
    await longestTurn();
    const annotations = { 'sluice.dev/sync-requested-at': String(number) };
    await up.api.patch(`${REPOSITORY}/packages`, { metadata: { annotations } });
    return eventually(
      () => up.api.get(`${PORCH}/packagerevisions/packages.p${number}.v1`),
      ({ status }) => status === 200,
    );
  }

  test.each(Object.entries(KPTFILES))('Kptfile: %s', async (name, Kptfile) => {
    await measured(`written Kptfile, ${name}`, () => written({ Kptfile }));
    await measured(`pushed Kptfile, ${name}`, () => pushed({ Kptfile }));
  });

  test.each(Object.entries(FILES))('files: %s', async (name, files) => {
    await measured(`written files, ${name}`, () => written({ ...files, Kptfile: OBJECT_CONDITION }));
    await measured(`pushed files, ${name}`, () => pushed({ ...files, Kptfile: OBJECT_CONDITION }));
  });

  /** Pushes commits with these texts behind their `tree` header to refs of a new name, and waits until the last one is taken in. */
  async function pushedObjects(refs: (name: string) => Readonly<Record<string, string>>): Promise<Answer> {
    number += 1;
    const tree = git('rev-parse', 'origin/main^{tree}').toString().trim();
    const lines: string[] = [];
    for (const [ref, text] of Object.entries(refs(`p${number}`))) {
      await writeFile(join(folder, 'object'), `tree ${tree}\n${text}`);
      const oid = git('hash-object', '-t', 'commit', '-w', '--literally', join(folder, 'object')).toString().trim();
      lines.push(`${oid}:${ref}`);
    }
    // Behind them in the order of refs, so that it is shown only with them.
    lines.push(`origin/main:refs/heads/drafts/p${number}/v1`);
    git('push', '-q', 'origin', ...lines);
    await longestTurn();
    const annotations = { 'sluice.dev/sync-requested-at': String(number) };
    await up.api.patch(`${REPOSITORY}/packages`, { metadata: { annotations } });
    return eventually(
      () => up.api.get(`${PORCH}/packagerevisions/packages.p${number}.v1`),
      ({ status }) => status === 200,
    );
  }

  test('commits and records', async () => {
    const people = 'author a <a@x> 0 +0000\ncommitter a <a@x> 0 +0000\n';
    const texts: Record<string, string> = {
      'a folded header': `${people}x y\n${filled(() => ' a\n')}\nm\n`,
      'many headers': `${people}${filled((i) => `x${i} y\n`)}\nm\n`,
      newlines: `${people}\nx\n${filled(() => '\n')}`,
      'many newlines': `${people}\nx${'\n'.repeat(15 * 1024 * 1024)}`,
      'kpt: lines': `${people}\nx\n\n${filled(() => 'kpt:{\n')}`,
      trailers: `${people}\nx\n\n${filled(() => 'Sluice-Actor: x\n')}`,
    };
    const head = (kind: string) => `{"statement":"sluice.dev/v1","kind":"${kind}","repository":"r","package":"p",`;
    const verdict = (i: number) =>
      `{"type":"t${i}","status":"True","inputs":{"content":"c"},"by":"q","face":"a","at":"t","since":"t"},`;
    const statements: Record<string, string> = {
      'many verdicts': `"record":{"version":1,"commit":"c","steps":[],"content":"c","verdicts":[${filled(verdict)}1]}}`,
      'verdicts without fields': `"record":{"version":1,"verdicts":[${filled(() => '{},')}1]}}`,
      labels: `"record":{"version":1,"labels":{${filled((i) => `"k${i}":1,`)}"a":1}}}`,
      'a deep list': `"record":${'['.repeat(1_000_000)}}`,
      'a text': `"record":{"version":1,"commit":"${'\\u0000'.repeat(160_000)}","steps":[],"content":"c","verdicts":[]}}`,
    };
    for (const [name, text] of Object.entries(texts))
      await measured(`pushed commits, ${name}`, () =>
        pushedObjects((at) => ({
          [`refs/heads/drafts/${at}/v0`]: text,
          [`refs/tags/${at}/v1`]: text,
          [`refs/sluice/records/${at}/v1`]: text,
        })),
      );
    for (const [name, text] of Object.entries(statements)) {
      const record = `${people}\ns\n\n${head('record')}"workspace":"v1","sequence":1,"previous":null,${text}\n\nSluice-Signature: x\n`;
      const publication = `${people}\ns\n\nSluice-Statement: ${head('publication')}"workspace":"v1","sequence":1,"previous":null,"revision":1,"tree":"t","draft":"d",${text}\nSluice-Signature: x\n`;
      await measured(`pushed statements, ${name}`, () =>
        pushedObjects((at) => ({
          [`refs/heads/drafts/${at}/v0`]: publication,
          [`refs/tags/${at}/v1`]: publication,
          ...Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`refs/sluice/records/${at}/v${i}`, record])),
        })),
      );
    }
  });

  test('commit messages', async () => {
    const Kptfile = OBJECT_CONDITION;
    const messages = {
      annotations: `x\n\n${filled((i) => `kpt:{"package":"p${i}"}\n`)}`,
      trailers: `x\n\n${filled((i) => `Sluice-Action: a${i}\n`)}`,
      'one line': 'x'.repeat(1_000_000),
    };
    for (const [name, message] of Object.entries(messages))
      await measured(`pushed message, ${name}`, () => pushed({ Kptfile }, message));
  });
});
