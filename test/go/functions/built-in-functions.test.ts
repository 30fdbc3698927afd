import { beforeAll, describe, expect, test } from 'vitest';
import { corpusMissing } from '../../support/corpus.ts';
import { buildGoModule, buildGoProgram, type GoProgram } from '../../support/go-program.ts';
import { type ComparisonCase, NAMESPACES, REPLACEMENTS, SCRIPTS, SETTERS } from './comparison-cases.ts';
import { publicCases } from './public-cases.ts';
import { runBuiltIn, runPublished } from './published-function.ts';

/** Compiling all of them for the first time takes about two minutes of one processor. */
const BUILDS_WITHIN = 900_000;

const CATALOG = 'github.com/GoogleContainerTools/kpt-functions-catalog/functions/go';

interface Compared {
  readonly name: string;
  /** The tag that pins it. */
  readonly tag: string;
  /** What it is built from. */
  readonly source: string;
  readonly build: () => Promise<GoProgram>;
  readonly cases: readonly ComparisonCase[];
}

function published(name: string, tag: string, cases: readonly ComparisonCase[]): Compared {
  const source = `${CATALOG}/${name}@${tag}`;
  return { name, tag, source, cases, build: () => buildGoModule(source, `${name}-${tag}`) };
}

/** Newer versions are not in the checksum database; their own code only reads the configuration and calls this filter. */
function filter(tag: string, kustomize: string, flags: readonly string[]): Compared {
  return {
    name: 'apply-replacements',
    tag,
    source: `the filter of sigs.k8s.io/kustomize/api@${kustomize}`,
    cases: REPLACEMENTS.filter(({ config }) => config !== undefined),
    build: () => buildGoProgram({ module: 'kustomize', name: `kustomize-${kustomize}`, target: '.', flags }),
  };
}

const COMPARED: readonly Compared[] = [
  published('apply-replacements', 'v0.1.1', REPLACEMENTS),
  filter('v0.1.2', 'v0.19.0', ['-modfile=v0.19.0.mod']),
  filter('v0.1.5', 'v0.21.1', []),
  published('apply-setters', 'v0.2.0', SETTERS),
  published('set-namespace', 'v0.4.1', NAMESPACES),
  published('starlark', 'v0.4.3', SCRIPTS),
];

const WITH_PUBLIC_PACKAGES = COMPARED.map((compared) => ({
  ...compared,
  cases: [...compared.cases, ...publicCases(compared.name, compared.tag)],
}));

describe.each(WITH_PUBLIC_PACKAGES)('$name $tag, built from $source', ({ name, tag, build, cases }) => {
  let program: GoProgram;
  beforeAll(async () => {
    program = await build();
  }, BUILDS_WITHIN);

  test.for(cases)('$what', async (input, { skip }) => {
    const path = program.path ?? skip(program.missing);
    const [theirs, ours] = await Promise.all([runPublished(path, input), runBuiltIn(name, tag, input)]);
    const { differs, also = () => undefined } = input;
    if (differs === undefined) {
      expect(also(ours)).toEqual(also(theirs));
      expect({ passes: ours.passes, values: ours.values }, `${theirs.stderr}${theirs.messages.join('\n')}`).toEqual({
        passes: theirs.passes,
        values: theirs.values,
      });
      return;
    }
    expect(differs.published(theirs), `the published function: ${differs.why}\n${theirs.text}`).toBe(true);
    expect(differs.builtIn(ours), `the built-in function\n${ours.text}`).toBe(true);
  });
});

test('is run on public packages, too', ({ skip }) => {
  if (corpusMissing !== false) skip(corpusMissing);
  const ran = COMPARED.flatMap(({ name, tag }) => publicCases(name, tag).map(({ what }) => `${name} ${tag}: ${what}`));
  console.log(ran.join('\n'));
  expect(ran.length).toBeGreaterThanOrEqual(8);
});
