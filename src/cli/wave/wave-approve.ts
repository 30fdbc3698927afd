import { wavePlanApprovals } from '../../../controllers/wave-plan/plan-spec.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { inPackages } from '../access/in-packages.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { expectPlan } from './wave-get.ts';
import { expectOpen } from './wave-step.ts';

export interface WaveApproveOptions extends PlaceOptions, ActorOptions {
  readonly wave?: string;
  readonly reason?: string;
}

/** `sluice wave approve` */
export function waveApprove(name: string, options: WaveApproveOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(
    options,
    invocation,
    async (access) => {
      const plan = await expectPlan(access, name);
      expectOpen(plan, 'approve', access.server !== undefined);
      const wave = waveOf(plan, options.wave);
      const { name: user, groups: own = [] } = await access.caller();
      const { approvals } = plan.spec;
      if (approvals.some((one) => one.wave === wave.name && one.user === user)) {
        invocation.terminal.line(`${printable(user)} has approved wave ${wave.name} of ${printable(name)} already`);
        return 0;
      }
      const groups = groupsOf(wave, own);
      expectCounted(wave, user, own);
      const { reason } = options;
      const approval = { wave: wave.name, user, ...groups, ...(reason === undefined ? {} : { reason }) };
      const spec = { ...plan.spec, approvals: [...approvals, approval] };
      await access.client.update(wavePlanKind, { ...plan, spec });
      const given = wavePlanApprovals({ spec }, wave.name).length;
      const needed = wave.approval?.required ?? 1;
      invocation.terminal.line(
        `${printable(user)} approved wave ${wave.name} of ${printable(name)}: ${given} of ${needed} approvals`,
      );
      return 0;
    },
    true,
  );
}

function waveOf({ metadata: { name }, spec, status }: WavePlan, wanted: string | undefined) {
  const started = new Set(status?.waves.map((wave) => wave.name));
  const waiting = spec.waves.filter((wave) => wave.approval !== undefined && !started.has(wave.name));
  const found = wanted === undefined ? waiting[0] : waiting.find((wave) => wave.name === wanted);
  if (found !== undefined) return found;
  const known = waiting.map((wave) => wave.name).join(', ');
  const hint =
    known === '' ? 'no wave that is still to start requires approvals' : `waves that require approvals: ${known}`;
  throw new SluiceError(
    'NotFound',
    `cannot approve ${wanted === undefined ? 'a wave' : `wave "${wanted}"`} of ${name}: ${hint}`,
  );
}

/** The groups that the wave counts. The server checks that the user is a member of them. */
function groupsOf({ approval }: WavePlan['spec']['waves'][number], own: readonly string[]) {
  const counted = own.filter((group) => approval?.from?.includes(`group:${group}`) === true);
  return counted.length === 0 ? {} : { groups: counted };
}

function expectCounted(
  { name, approval }: WavePlan['spec']['waves'][number],
  user: string,
  own: readonly string[],
): void {
  const { from } = approval ?? {};
  if (from === undefined || from.includes(user) || own.some((group) => from.includes(`group:${group}`))) return;
  throw new SluiceError(
    'Refused',
    `cannot approve wave ${name}: it counts approvals by ${from.join(', ')}, and you are ${user}; let one of them approve, or a user who may change the plan list you in spec.waves[].approval.from`,
  );
}
