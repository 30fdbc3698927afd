import { describeRun } from '../../../controllers/analysis/describe-run.ts';
import { describeVariant, type ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { setOf } from '../../../controllers/package-variant/plan-variant.ts';
import { describeSet } from '../../../controllers/package-variant-set/describe-set.ts';
import { readUnknownNames } from '../../../controllers/unknown-names.ts';
import { describePlan } from '../../../controllers/wave-plan/describe-plan.ts';
import { isOfPlan } from '../../../controllers/wave-plan/plan-records.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { commandLine } from '../../foundation/text/command-line.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { spacedWords } from '../../foundation/text/spaced-words.ts';
import { sluiceCommand } from '../../package/api/explain/explainer.ts';
import { setsOf } from '../../package/store/policies/selected-packages.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { analysisRunKind } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../resource/kinds/sluice/wave/wave-target.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';
import { printable } from '../output/printable.ts';
import type { Terminal } from '../output/terminal.ts';
import { expectObject } from './expect-object.ts';
import { explainRepository, explainTarget } from './why-conditions.ts';
import { explainFreeze } from './why-freeze.ts';
import { explainPolicy } from './why-policy.ts';

type Explain = (access: Access, name: string) => Promise<ObjectExplanation>;

/** Kinds besides package revisions that `sluice why <kind>/<name>` explains, by the names that users write. */
const EXPLAINED: Readonly<Record<string, Explain>> = {
  ...named(packageVariantKind, async (access, name) => {
    const { client, namespace } = access;
    const variant = await expectObject(access, packageVariantKind, name);
    const set = setOf(variant.metadata);
    return describeVariant(
      variant,
      set === undefined ? undefined : await client.find(packageVariantSetKind, { namespace, name: set }),
    );
  }),
  ...named(packageVariantSetKind, async (access, name) => {
    const { client, namespace } = access;
    const set = await expectObject(access, packageVariantSetKind, name);
    const { items } = await client.list(packageVariantKind, { namespace });
    const own = items.filter((variant) => setsOf(variant).some(({ uid }) => uid === set.metadata.uid));
    return describeSet(set, own);
  }),
  ...named(wavePlanKind, async (access, name) => {
    const { client, namespace } = access;
    const plan = await expectObject(access, wavePlanKind, name);
    const fieldSelector = `spec.plan=${name}`;
    const { items } = await client.list(waveTargetKind, { namespace, fieldSelector });
    const targets = items.filter((target) => isOfPlan(target, plan));
    const { repositories, variantSet } = plan.spec.selector ?? {};
    const names = { repositories, variantSets: variantSet === undefined ? [] : [variantSet] };
    return describePlan(plan, targets, await readUnknownNames(client, namespace, names), access.server !== undefined);
  }),
  ...named(analysisRunKind, async (access, name) => describeRun(await expectObject(access, analysisRunKind, name))),
  ...named(packagePolicyKind, explainPolicy),
  ...named(freezeKind, explainFreeze),
  ...named(repositoryKind, explainRepository),
  ...named(deliveryTargetKind, explainTarget),
};

/** The nouns of commands, and their plurals. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  repos: 'repository',
  target: 'deliverytarget',
  targets: 'deliverytarget',
  wave: 'waveplan',
  policy: 'packagepolicy',
};

const EXPLAINED_KINDS = [
  ...[packageVariantKind, packageVariantSetKind, wavePlanKind, analysisRunKind, packagePolicyKind, freezeKind],
  ...[repositoryKind, deliveryTargetKind],
].map(({ kind }) => kind.toLowerCase());

/** A package revision as kubectl names it, with or without its group. */
const REVISION = /^(?:packagerevisions?|rpkg)(?:\.[^/]*)?\/(?<name>.+)$/i;

function named(
  { kind, plural, shortNames }: Pick<Kind<KubernetesObject>, 'kind' | 'plural' | 'shortNames'>,
  explain: Explain,
): Record<string, Explain> {
  return Object.fromEntries([kind.toLowerCase(), plural, ...shortNames].map((name) => [name, explain]));
}

/** The name of a package revision that a user gave, with or without its kind. */
export function revisionName(text: string): string {
  return REVISION.exec(text)?.groups?.name ?? text;
}

/** A code of several words in a state, which is for programs. */
const CODE = /\b(?:[A-Z][a-z]+){2,}\b/g;

/** The explanation of `<kind>/<name>`; undefined for a text that is the name of a package revision. */
export async function explainObject(access: Access, text: string): Promise<ObjectExplanation | undefined> {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  // `-o name` prints a kind with its group.
  const written = text.slice(0, slash).toLowerCase().split('.', 1)[0] ?? '';
  const kind = Object.hasOwn(SHORT_NAMES, written) ? (SHORT_NAMES[written] ?? '') : written;
  const explain = Object.hasOwn(EXPLAINED, kind) ? EXPLAINED[kind] : undefined;
  if (explain !== undefined) return explain(access, text.slice(slash + 1));
  const near = nearMisses(kind, EXPLAINED_KINDS).map((one) => `"sluice why ${one}${text.slice(slash)}"`);
  const meant = near.length === 0 ? '' : `did you mean ${near.join(' or ')}? `;
  throw new SluiceError(
    'InvalidInput',
    `cannot explain objects of the kind "${kind}"; ${meant}give the name of a package revision, or <kind>/<name> with one of the kinds ${EXPLAINED_KINDS.join(', ')}; other objects are shown by ${commandLine(['kubectl', 'get', kind, text.slice(slash + 1), '-o', 'yaml'])}`,
  );
}

export function printObjectExplanation(
  terminal: Terminal,
  { subject, state, reasons, next, commands = [] }: ObjectExplanation,
  place: (command: string) => string,
): void {
  const stateText = state.replaceAll(CODE, (code) => spacedWords(code).toLowerCase());
  terminal.line(`${terminal.style('bold', printable(subject))}  ${printable(stateText)}`);
  terminal.line();
  terminal.line('Why it is here:');
  for (const reason of reasons) terminal.line(`  - ${printable(reason)}`);
  if (next.length + commands.length === 0) return;
  terminal.line();
  terminal.line('Next:');
  for (const command of commands) terminal.line(`  ${terminal.style('bold', printable(command))}`);
  for (const words of next) terminal.line(`  ${printable(place(sluiceCommand('why', ...words.split(' '))))}`);
}
