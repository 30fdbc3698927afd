// Keeps the import direction of the architecture: a folder imports only from folders above it in ORDER, a sub-folder only from those
// before it in PARTS, and no file imports itself through others. Run by `npm run lint`; prints every offending import and exits 1.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** From the bottom up: each entry may import from itself and from every entry before it. */
const ORDER = [
  'kptfile-schema',
  'src/foundation',
  'src/expression',
  'src/starlark',
  'src/git',
  'src/resource',
  'src/package',
  'src/function',
  'src/allocation',
  'src/controller',
  'src/forge',
  'src/delivery',
  'src/rollout',
  'src/workflow',
  'src/server',
  'src/kubernetes',
  'controllers',
  'src/app',
  'src/cli',
];

/**
 * The same for the sub-folders of a folder; `.` are its own files. A part that is not listed is in no folder of the architecture.
 */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  'kptfile-schema': ['model', 'yaml', 'read', 'lint', 'edit', '.', 'test', 'scripts'],
  'src/foundation': ['.', 'time', 'tracing', 'concurrency', 'text', 'files'],
  'src/starlark': ['machine', 'values', 'library', 'syntax', 'compile', 'modules', '.'],
  'src/git': [
    ...[
      '.',
      'network',
      'disk',
      'objects/pack',
      'objects',
      'objects/files',
      'refs',
      'process',
      'remote/protocol',
      'remote/http',
      'remote/ssh',
    ],
    ...[
      'remote/client',
      'remote/git',
      'remote',
      'signing',
      'maintenance',
      'engines',
      'engines/native',
      'engines/isomorphic',
    ],
    'open',
  ],
  'src/resource': [
    ...[
      'object',
      'schema/structural',
      'schema',
      'selector',
      'patch',
      'storage',
      'kinds/common',
      'kinds/core',
      'kinds/events',
      'kinds/rbac',
      'kinds/coordination',
      'kinds/apiregistration',
      'kinds/admissionregistration',
      'kinds/apiextensions',
      'kinds/infra',
      'kinds/porch',
      'kinds/sluice',
      'kinds/sluice/delivery',
      'kinds/sluice/wave',
      'kinds/ipam',
      'kinds',
      'watch',
      'storage/memory',
      'storage/sqlite',
    ],
    ...['apply', 'client'],
  ],
  'src/package': [
    ...[
      'trust/ledger',
      'trust/statement',
      'trust/keys',
      'trust',
      'trust/sqlite',
      'trust/cluster',
      'trust/testing',
      'model/krm',
      'model/identity',
      'model/diff',
      'model/policy',
      'model/content',
      'model/record',
      'model/gates',
      'model/revision',
      'kernel',
      'kernel/testing',
      'merge',
      'index/facts',
      'index/trust',
      'index/state',
      'index/marks',
      'index',
      'upstream',
      'verify',
    ],
    ...[
      'plan/ports',
      'plan/records',
      'plan/edit',
      'plan',
      'plan/create',
      'transaction',
      'store/policies',
      'store/limits',
      'store',
      'store/opening',
    ],
    ...['api/explain', 'api/objects', 'api/requests', 'api/table', 'api/storages', 'api'],
  ],
  'src/function': [
    ...['yaml', 'resource', 'model', 'resource-list', 'schema'],
    ...[
      'built-in/support/fields',
      'built-in/support/names',
      'built-in/support/text',
      'built-in/support',
      'built-in/apply-replacements',
    ],
    ...[
      'built-in/cel-validation',
      'built-in/kubeconform',
      'built-in/search-replace',
      'starlark',
      'built-in',
      'catalog',
      'external',
    ],
    ...['pipeline', 'worker', 'renderer', 'lint'],
  ],
  'src/delivery': [
    '.',
    'yaml',
    'selection',
    'delivered',
    'tree',
    'render',
    'status',
    'status/sources',
    'rollback',
    'dora',
    'pull-request',
  ],
  'src/rollout': ['analysis', 'wave'],
  'src/server': [
    ...[
      'certificates',
      'limits',
      'authentication',
      'authorization',
      'http',
      'protobuf/messages',
      'protobuf',
      'reviews',
      'documents/discovery',
      'documents/openapi',
      'documents',
    ],
    ...['request', 'presentation', 'audit', 'health', 'metrics', 'watch', 'handlers', 'filters', '.'],
    ...['webhooks/seen', 'webhooks/host', 'webhooks', 'admission'],
  ],
  'src/kubernetes': ['access', 'connection', '.', 'storage'],
  'src/app': [
    ...[
      '.',
      'data',
      'trust',
      'repositories',
      'policies/repository',
      'policies',
      'functions',
      'resolvers',
      'session',
      'controllers',
      'service/log',
      'service',
      'cluster/repositories',
      'cluster/leadership',
      'cluster',
      'tracing',
    ],
  ],
  'src/cli': [
    'output',
    'access/hints',
    'access',
    'completion',
    'fn/files',
    'fn/run',
    'fn',
    'data',
    'transfer',
    'migrate',
    'kptfile',
    'check',
    'repo',
    'up',
    'serve',
    'verify',
    'why',
    'demo',
    'key',
    'rpkg',
    'target',
    'wave',
    'freeze',
    'dora',
    '.',
  ],
};

/** Exceptions to the plain order: what a folder must not import although it is above. */
const FORBIDDEN: Readonly<Record<string, readonly string[]>> = {
  controllers: ['src/server', 'src/kubernetes'],
};

/** Tests beside the code, and the parts that several of them share. */
const TEST_CODE = /\.(test|conformance)\.ts$/;
/** What tests share within the product's folders, which is not built: it may use every part of its folder, and what all tests share. */
const TEST_SUPPORT = /(^|\/)testing(-[^/]*)?\.ts$|\/testing\//;

function layerOf(path: string): string | undefined {
  return ORDER.find((layer) => path === layer || path.startsWith(`${layer}/`));
}

/** The place of a file among the parts of its folder; undefined if the folder has no parts. */
function partOf(path: string, layer: string): string | undefined {
  return PARTS[layer] === undefined ? undefined : relative(layer, dirname(path)) || '.';
}

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules' && entry.name !== 'dist') yield* sources(path);
    } else if (entry.name.endsWith('.ts')) yield path;
  }
}

/** Files that a module imports: static, re-exporting and dynamic imports by relative paths. */
function importsOf(file: string): string[] {
  const matches = readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
  return [...matches].map(([, specifier]) => relative(root, resolve(root, dirname(file), specifier as string)));
}

const problems: string[] = [];
const graph = new Map<string, string[]>();

/** Why a file must not import another one; undefined if it may. */
function objectionTo(file: string, target: string): string | undefined {
  const from = layerOf(file) as string;
  const to = layerOf(target);
  const isTest = TEST_CODE.test(file);
  if (to === undefined) {
    if (!target.startsWith('test/')) return `imports ${target}, outside the architecture`;
    return isTest || TEST_SUPPORT.test(file) ? undefined : `product code imports test code ${target}`;
  }
  if (from === 'kptfile-schema' && to !== from) return 'kptfile-schema depends on nothing here';
  if (FORBIDDEN[from]?.includes(to)) return `${from} must not import ${to} (${target})`;
  if (isTest) return undefined;
  if (ORDER.indexOf(to) > ORDER.indexOf(from)) return `${from} must not import ${to} (${target})`;
  if (to !== from || TEST_SUPPORT.test(file)) return undefined;
  const [part, other] = [partOf(file, from), partOf(target, from)];
  if (part === undefined || other === undefined) return undefined;
  const parts = PARTS[from] as readonly string[];
  return parts.indexOf(other) > parts.indexOf(part)
    ? `${from}: ${part} must not import ${other} (${target})`
    : undefined;
}

for (const top of ['kptfile-schema', 'src', 'controllers']) {
  for (const file of sources(top)) {
    const layer = layerOf(file);
    const part = layer === undefined ? undefined : partOf(file, layer);
    if (layer === undefined || (part !== undefined && !PARTS[layer]?.includes(part))) {
      problems.push(`${file}: is in no folder of the architecture`);
      continue;
    }
    const targets = importsOf(file);
    if (!TEST_CODE.test(file)) graph.set(file, targets);
    for (const target of targets) {
      const objection = objectionTo(file, target);
      if (objection !== undefined) problems.push(`${file}: ${objection}`);
    }
  }
}

/** Walks the imports depth first; a file that occurs again on its own path closes a cycle. */
function findCycles(): void {
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    const start = path.indexOf(file);
    if (start >= 0) problems.push(`import cycle: ${[...path.slice(start), file].join(' -> ')}`);
    if (start >= 0 || done.has(file)) return;
    path.push(file);
    for (const target of graph.get(file) ?? []) visit(target);
    path.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
}

findCycles();
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
