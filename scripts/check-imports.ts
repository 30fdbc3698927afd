// Keeps the import direction of the architecture: a folder imports only from folders above it in ORDER.
// Run by `npm run lint`; prints every offending import and exits 1.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** From the bottom up: each entry may import from itself and from every entry before it. */
const ORDER = [
  'kptfile-schema',
  'src/foundation',
  'src/expression',
  'src/git',
  'src/resource',
  'src/package',
  'src/function',
  'src/allocation',
  'src/controller',
  'src/server',
  'src/kubernetes',
  'src/forge',
  'src/delivery',
  'src/rollout',
  'src/workflow',
  'controllers',
  'src/cli',
] as const;

/** Exceptions to the plain order: what a folder must not import although it stands above. */
const FORBIDDEN: Readonly<Record<string, readonly string[]>> = {
  controllers: ['src/server', 'src/kubernetes'],
};

/** Tests beside the code, and the parts that several of them share. */
const TEST_CODE = /\.(test|conformance)\.ts$/;

function layerOf(path: string): string | undefined {
  return ORDER.find((layer) => path === layer || path.startsWith(`${layer}/`));
}

function* sources(folder: string): Generator<string> {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      if (entry.name !== 'node_modules' && entry.name !== 'dist') yield* sources(path);
    } else if (entry.name.endsWith('.ts')) yield path;
  }
}

/** Import specifiers of a module: static, re-exporting and dynamic ones. */
function specifiers(text: string): string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] as string);
}

const problems: string[] = [];
for (const top of ['kptfile-schema', 'src', 'controllers']) {
  for (const file of sources(top)) {
    const from = layerOf(file);
    if (from === undefined) {
      problems.push(`${file}: stands in no folder of the architecture`);
      continue;
    }
    for (const specifier of specifiers(readFileSync(join(root, file), 'utf8'))) {
      if (!specifier.startsWith('.')) continue;
      const target = relative(root, resolve(root, dirname(file), specifier));
      const to = layerOf(target);
      if (to === undefined) {
        if (!target.startsWith('test/')) problems.push(`${file}: imports ${target}, outside the architecture`);
        else if (!TEST_CODE.test(file)) problems.push(`${file}: product code imports test code ${target}`);
      } else if (ORDER.indexOf(to as never) > ORDER.indexOf(from as never) && !file.endsWith('.test.ts'))
        problems.push(`${file}: ${from} must not import ${to} (${specifier})`);
      else if (FORBIDDEN[from]?.includes(to)) problems.push(`${file}: ${from} must not import ${to} (${specifier})`);
      else if (from === 'kptfile-schema' && to !== from)
        problems.push(`${file}: kptfile-schema depends on nothing here`);
    }
  }
}
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
