import { describeRun } from '../../../controllers/analysis/describe-run.ts';
import { describeVariant, type ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { setOf } from '../../../controllers/package-variant/plan-variant.ts';
import { describeSet } from '../../../controllers/package-variant-set/describe-set.ts';
import { readUnknownNames } from '../../../controllers/unknown-names.ts';
import { describePlan } from '../../../controllers/wave-plan/describe-plan.ts';
import { isOfPlan } from '../../../controllers/wave-plan/plan-records.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { sluiceCommand } from '../../package/api/explain/explainer.ts';
import { setsOf } from '../../package/store/policies/selected-packages.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { analysisRunKind } from '../../resource/kinds/sluice/wave/analysis-run.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../resource/kinds/sluice/wave/wave-target.ts';
import type { Access } from '../access/access.ts';
import { printable } from '../output/printable.ts';
import type { Terminal } from '../output/terminal.ts';
import { expectObject } from './expect-object.ts';
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
};

const EXPLAINED_KINDS = Object.keys(EXPLAINED).filter((name) => !name.endsWith('s'));

function named(
  { kind, plural }: { readonly kind: string; readonly plural: string },
  explain: Explain,
): Record<string, Explain> {
  return { [kind.toLowerCase()]: explain, [plural]: explain };
}

/** The explanation of `<kind>/<name>`; undefined for a text that is the name of a package revision. */
export async function explainObject(access: Access, text: string): Promise<ObjectExplanation | undefined> {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  const kind = text.slice(0, slash).toLowerCase();
  const explain = Object.hasOwn(EXPLAINED, kind) ? EXPLAINED[kind] : undefined;
  if (explain !== undefined) return explain(access, text.slice(slash + 1));
  const known = EXPLAINED_KINDS;
  const near = nearMisses(kind, known);
  const meant = near.map((one) => `"sluice why ${one}${text.slice(slash)}"`).join(' or ');
  throw new SluiceError(
    'InvalidInput',
    `cannot explain objects of the kind "${kind}"; ${near.length === 0 ? '' : `did you mean ${meant}? Otherwise `}use the name of a package revision, or ${known.join('/<name> or ')}/<name>`,
  );
}

export function printObjectExplanation(
  terminal: Terminal,
  { subject, state, reasons, next, commands = [] }: ObjectExplanation,
  place: (command: string) => string,
): void {
  terminal.line(`${terminal.style('bold', printable(subject))}  ${printable(state)}`);
  terminal.line();
  terminal.line('Why it is here:');
  for (const reason of reasons) terminal.line(`  - ${printable(reason)}`);
  if (next.length + commands.length === 0) return;
  terminal.line();
  terminal.line('Next:');
  for (const command of commands) terminal.line(`  ${terminal.style('bold', printable(command))}`);
  for (const words of next) terminal.line(`  ${printable(place(sluiceCommand('why', ...words.split(' '))))}`);
}
