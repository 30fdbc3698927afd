import type { PackageRevision } from '../../model/revision/package-revision.ts';
import { repairSteps, sluiceCommand } from './explainer.ts';

/**
 * The next steps of several findings as one list without repetition, in which users can carry them out: several can each require that a proposal is
 * rejected, changed and proposed again.
 */
export function orderSteps(
  revision: Pick<PackageRevision, 'key' | 'lifecycle' | 'name'>,
  findings: readonly string[],
): string[] {
  const steps = [...new Set(findings)];
  const { name, lifecycle } = revision;
  const command = (verb: string) => sluiceCommand('rpkg', verb, name);
  const isProposed = lifecycle === 'Proposed';
  const edits = [command('rebase'), ...repairSteps(revision)];
  const propose = command('propose');
  const order = isProposed
    ? [command('diff'), command('reject'), ...edits, sluiceCommand('up'), propose]
    : [...edits, ...(steps.indexOf(propose) < steps.findLastIndex((step) => edits.includes(step)) ? [propose] : [])];
  // Rejections can have different reasons, of which the first one is enough.
  const isStep = (step: string, of: string) => step === of || step.startsWith(`${of} `);
  const repair = order.flatMap((of) => steps.find((step) => isStep(step, of)) ?? []);
  const isEdited = repair.some((step) => edits.some((of) => isStep(step, of)));
  const isRejected = repair.some((step) => isStep(step, command('reject')));
  if (!isEdited || (isProposed && !isRejected)) return steps;
  const again = isProposed && !repair.includes(propose) ? [propose] : [];
  const isRepair = (step: string) => order.some((of) => isStep(step, of));
  const at = steps.findIndex(isRepair);
  return [...steps.slice(0, at), ...repair, ...again, ...steps.slice(at).filter((step) => !isRepair(step))];
}
