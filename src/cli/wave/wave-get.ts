import { isInProgress, specNotes, targetNotes } from '../../../controllers/wave-plan/describe-plan.ts';
import { commandsOf, requestText, verificationText } from '../../../controllers/wave-plan/describe-waits.ts';
import { isOfPlan } from '../../../controllers/wave-plan/plan-records.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { waveTargetKind } from '../../resource/kinds/sluice/wave/wave-target.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { placedCommand } from '../access/hints/command-for.ts';
import { inPackages } from '../access/in-packages.ts';
import { placeOf } from '../access/place.ts';
import type { CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printObjects } from '../output/print-objects.ts';
import { printable } from '../output/printable.ts';
import { table } from '../output/table.ts';
import { WAVE_COLUMNS, waveRows } from './wave-rows.ts';

export interface WaveGetOptions extends PlaceOptions {
  readonly output: 'table' | 'json' | 'yaml';
  readonly headers: boolean;
  readonly allNamespaces?: boolean;
  readonly targets?: boolean;
}

/** `sluice wave get` */
export function waveGet(
  names: readonly string[],
  options: WaveGetOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const namespace = options.allNamespaces === true ? undefined : access.namespace;
    const { plans, missing } =
      names.length > 0 ? await namedPlans(access, names) : { plans: await plansOf(access, namespace), missing: [] };
    if (plans.length > 0 || missing.length === 0)
      await printPlans(access, plans, names.length === 1, options, invocation);
    if (missing.length > 0) throw new SluiceError('NotFound', missing.join('\n'));
    return 0;
  });
}

/** The plans with these names, and what is to be said about each name that no plan has. */
async function namedPlans(access: Access, names: readonly string[]) {
  const plans: Stored<WavePlan>[] = [];
  const missing: string[] = [];
  for (const name of names) {
    try {
      plans.push(await expectPlan(access, name));
    } catch (error) {
      if (!isSluiceError(error, 'NotFound')) throw error;
      missing.push(error.message);
    }
  }
  return { plans, missing };
}

async function printPlans(
  access: Access,
  plans: readonly Stored<WavePlan>[],
  single: boolean,
  options: WaveGetOptions,
  invocation: Invocation,
): Promise<void> {
  const { output, headers, allNamespaces = false, targets: showsTargets } = options;
  const { terminal } = invocation;
  const now = access.clock.now();
  if (showsTargets === true) {
    const { items } = await access.client.list(waveTargetKind, allNamespaces ? {} : { namespace: access.namespace });
    const isMeant = new Set(plans.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
    const targets = items
      .filter(({ metadata, spec }) => isMeant.has(`${metadata.namespace}/${spec.plan}`))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    printObjects(terminal, waveTargetKind, targets, { output: output === 'table' ? 'wide' : output, headers, now });
    return;
  }
  if (output !== 'table') {
    printObjects(terminal, wavePlanKind, plans, { output, headers, now, single });
    return;
  }
  printObjects(terminal, wavePlanKind, plans, { output, headers, now, showNamespace: allNamespaces });
  const [plan] = plans;
  if (!single || plan === undefined) return;
  terminal.line('');
  const rows = waveRows(plan).map((row) => row.map((cell) => terminal.copyable(cell)));
  terminal.out.write(table(WAVE_COLUMNS, rows, { headers }));
  const notes = await notesOf(plan, access);
  if (notes.length > 0) terminal.line(`\n${notes.map(printable).join('\n')}`);
  const place = placedCommand(options, invocation, placeOf(options, invocation.environment).kind === 'server');
  const commands = commandsOf(plan).map((one) => `  ${printable(place(one, plan.metadata.namespace))}`);
  if (commands.length > 0) terminal.line(`\nNext:\n${commands.join('\n')}`);
}

/** What a plan waits for, what is requested of it, what verifies its targets, and which of them are not done. */
async function notesOf(plan: Stored<WavePlan>, { client, namespace, server }: Access): Promise<string[]> {
  const { message } = plan.status ?? {};
  const request = requestText(plan, server !== undefined);
  const notes = [...(message === undefined ? [] : [message, ...specNotes(plan)]), ...(request ? [request] : [])];
  if (!isInProgress(plan)) return notes;
  const { items } = await client.list(waveTargetKind, { namespace, fieldSelector: `spec.plan=${plan.metadata.name}` });
  const own = items.filter((target) => isOfPlan(target, plan));
  return [...notes, verificationText(plan), ...targetNotes(plan, own)];
}

/** A plan by name; NotFound with what may have been meant. */
export async function expectPlan(access: Access, name: string): Promise<Stored<WavePlan>> {
  const found = await access.client.find(wavePlanKind, { namespace: access.namespace, name });
  if (found !== undefined) return found;
  const near = nearMisses(
    name,
    (await plansOf(access, access.namespace)).map(({ metadata }) => metadata.name),
  );
  const hint = near.length === 0 ? '"sluice wave get" lists what there is' : `did you mean ${near.join(' or ')}?`;
  throw new SluiceError('NotFound', `there is no wave plan "${name}" in namespace ${access.namespace}; ${hint}`);
}

async function plansOf({ client }: Access, namespace: string | undefined): Promise<Stored<WavePlan>[]> {
  const { items } = await client.list(wavePlanKind, namespace === undefined ? {} : { namespace });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}
