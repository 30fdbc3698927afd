import { conditionsOf, contentOf, gatesOf, readKptfile } from '../../kptfile-schema/index.ts';
import { canonicalJson, digest } from '../../src/foundation/text/canonical-json.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { PackageContent } from '../../src/package/model/content/content.ts';
import { evaluateGates } from '../../src/package/model/gates/gates.ts';
import { isYamlPath, readKrmFile } from '../../src/package/model/krm/krm.ts';
import { formatConditionType } from '../../src/package/model/policy/condition-type.ts';
import { DEFAULT_POLICY, type EffectivePolicy } from '../../src/package/model/policy/policy.ts';
import { emptyRecord, type RevisionRecord } from '../../src/package/model/record/record.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { Resolution, Resolver, ResolverContext, ResolverSubject } from '../../src/package/plan/ports/resolver.ts';
import type { RevisionEvaluation } from '../../src/package/store/evaluate-revision.ts';
import { arrangeResolvers } from './arrange-resolvers.ts';
import { type RunOptions, type RunOutcome, runResolvers } from './run-resolvers.ts';

export const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';

/** A draft as a value, for tests without a repository. */
export function draftOf(
  files: Readonly<Record<string, string>>,
  options: { readonly policy?: Partial<EffectivePolicy>; readonly record?: Partial<RevisionRecord> } = {},
): RevisionEvaluation {
  const data = new Map(Object.entries({ Kptfile: KPTFILE, ...files }).map(([path, text]) => [path, Buffer.from(text)]));
  const read = readKptfile(data.get('Kptfile')?.toString() ?? '');
  if (!read.ok) throw new Error(read.error.message);
  const { kptfile } = read;
  const objects = [...data].flatMap(([path, bytes]) => (isYamlPath(path) ? readKrmFile(path, bytes).objects : []));
  const rest = [...data].filter(([path]) => path !== 'Kptfile').map(([path, bytes]) => `${path} ${digest(bytes)}`);
  const content: PackageContent = {
    tree: '',
    files: data,
    skipped: [],
    content: digest([canonicalJson(contentOf(kptfile)), ...rest].join('\n')),
    objects: () => objects,
    object: (type) => {
      const found = objects.filter((object) => formatConditionType(object) === type);
      const bodies = found.map(({ value: { status: _status, ...body } }) => canonicalJson(body));
      return bodies.length === 0 ? undefined : digest(bodies.join('\n'));
    },
    file: (path) => {
      const bytes = data.get(path);
      return bytes === undefined ? undefined : digest(bytes);
    },
  };
  const policy = { ...DEFAULT_POLICY, ...options.policy };
  const record = { ...emptyRecord('c0'), ...options.record };
  const revision = { name: 'apps.app.w1', commit: 'c0', kptfile, lifecycle: 'Draft' } as PackageRevision;
  const facts = { gates: gatesOf(kptfile), conditions: conditionsOf(kptfile), record, inputs: content };
  const at = '2026-01-01T00:00:00Z';
  return { revision, content, record, policy, gates: evaluateGates(facts, policy, at), at };
}

/** A resolver that applies to every package. `calls` collects the names of resolvers in call order. */
export function resolverOf(
  name: string,
  resolve: (subject: ResolverSubject, context: ResolverContext) => Resolution | Promise<Resolution>,
  options: Partial<Resolver> & { readonly calls?: string[] } = {},
): Resolver {
  const { calls, ...rest } = options;
  return {
    name,
    claims: [`test.dev/${name}`],
    applies: () => true,
    ...rest,
    resolve: (subject, context) => {
      calls?.push(name);
      return resolve(subject, context);
    },
  };
}

/** A run without a controller around it. */
export function runOf(
  draft: RevisionEvaluation,
  resolvers: readonly Resolver[],
  options: Partial<RunOptions> = {},
): Promise<RunOutcome> {
  const clock = options.clock ?? new ManualClock();
  const context = { now: clock.now(), signal: new AbortController().signal };
  return runResolvers(draft, arrangeResolvers(resolvers), {
    context,
    clock,
    timeout: 1000,
    namespace: 'default',
    ...options,
  });
}

export function textOf(outcome: RunOutcome, path: string): string | undefined {
  return outcome.package.subject.files.get(path)?.toString();
}
