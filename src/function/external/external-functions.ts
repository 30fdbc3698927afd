import { SluiceError } from '../../foundation/sluice-error.ts';
import { type ContainerOptions, ContainerRunner } from './container-runner.ts';
import { type ExecOptions, ExecRunner } from './exec-runner.ts';
import type { ExternalRunner } from './external-runner.ts';

export interface ExternalFunctionsOptions {
  /** A text refuses every program; it is the advice of the message. */
  readonly programs: ExecOptions | string;
  /** A text refuses every image; it is the advice of the message. */
  readonly containers: ContainerOptions | string;
}

/** Runs `exec` entries of a pipeline as programs, and `image` entries as containers. */
export function externalFunctions({ programs, containers }: ExternalFunctionsOptions): ExternalRunner {
  const execs = typeof programs === 'string' ? refusing('exec', 'programs', programs) : new ExecRunner(programs);
  const images =
    typeof containers === 'string' ? refusing('image', 'containers', containers) : new ContainerRunner(containers);
  return {
    async refusal({ exec, image }) {
      if (exec !== undefined) return execs.refusal(exec);
      if (image !== undefined) return images.refusal(image);
      return 'the function has neither image nor exec';
    },
    async run({ exec, image, input }, signal) {
      if (exec !== undefined) return execs.run(exec, input, signal);
      if (image !== undefined) return images.run(image, input, signal);
      throw new SluiceError('InvalidInput', 'the function has neither image nor exec');
    },
  };
}

function refusing(field: string, what: string, advice: string): Pick<ExecRunner, 'refusal' | 'run'> {
  const refusal = (name: string) =>
    `${field} ${JSON.stringify(name)} cannot be run: ${what} are not allowed; ${advice}`;
  return {
    refusal: async (name) => refusal(name),
    run: async (name) => {
      throw new SluiceError('Unavailable', refusal(name));
    },
  };
}
