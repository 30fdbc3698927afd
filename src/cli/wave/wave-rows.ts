import type { WavePlan } from '../../resource/kinds/sluice/wave/wave-plan.ts';

export const WAVE_COLUMNS = ['Wave', 'Size', 'State', 'Targets', 'Verified', 'Failed', 'Message'];

/** One line for each wave of a plan: those that have started, then those of the spec that have not. */
export function waveRows({ spec, status }: WavePlan): string[][] {
  const started = status?.waves ?? [];
  const hasEnded = status?.phase === 'Aborted' || status?.phase === 'RolledBack';
  const rows = started.map((wave) => [
    wave.name,
    sizeText(spec.waves.find(({ name }) => name === wave.name)),
    ...(hasEnded && wave.completedMs === undefined ? ['Ended'] : [stateOf(wave)]),
    ...[String(wave.targets), String(wave.verified), String(wave.failed)],
    hasEnded ? '' : (wave.message ?? ''),
  ]);
  const waiting = spec.waves.filter(({ name }) => started.every((wave) => wave.name !== name));
  const rest = (wave: (typeof waiting)[number]) =>
    hasEnded ? ['Ended', '', '', '', ''] : ['Waiting', '', '', '', approvalText(wave)];
  return [...rows, ...waiting.map((wave) => [wave.name, sizeText(wave), ...rest(wave)])];
}

/** The freezes that stop a plan: which, until when, and why. Undefined if there is none. */
export function freezesText({ status }: WavePlan): string | undefined {
  return status?.freezes
    ?.map(
      ({ namespace, name, reason, until }) => `Freeze ${namespace}/${name} until ${until ?? 'it is ended'} (${reason})`,
    )
    .join('; ');
}

/** A wave whose targets all have a result is not verified if one of them failed, although the plan may permit that. */
function stateOf({
  completedMs,
  isPromoted,
  verifiedMs,
  failed,
}: NonNullable<WavePlan['status']>['waves'][number]): string {
  if (isPromoted === true) return 'Passed';
  if (completedMs !== undefined) return failed > 0 ? 'CompletedWithFailures' : 'Completed';
  if (verifiedMs === undefined) return 'InProgress';
  return failed > 0 ? 'HasFailures' : 'Verified';
}

function sizeText(wave: WavePlan['spec']['waves'][number] | undefined): string {
  if (wave === undefined) return '';
  if (wave.percent !== undefined) return `${wave.percent}%`;
  return wave.count === undefined ? 'selector' : String(wave.count);
}

function approvalText({ approval }: WavePlan['spec']['waves'][number]): string {
  if (approval === undefined) return '';
  const number = approval.required ?? 1;
  const by = approval.from === undefined ? '' : ` by ${approval.from.join(', ')}`;
  return `requires ${number} ${number === 1 ? 'approval' : 'approvals'}${by}`;
}
