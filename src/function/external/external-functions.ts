import { SluiceError } from '../../foundation/sluice-error.ts';
import { type ContainerOptions, ContainerRunner } from './container-runner.ts';
import { type ExecOptions, ExecRunner } from './exec-runner.ts';
import type { ExternalRunner } from './external-runner.ts';

export interface ExternalFunctionsOptions {
  /** A text refuses every program, and says what to do about that. */
  readonly programs: ExecOptions | string;
  /** A text refuses every image, and says what to do about that. */
  readonly containers: ContainerOptions | string;
}

/** Runs what a pipeline names by `exec` as a program, and what it names by `image` as a container. */
export function externalFunctions({ programs, containers }: ExternalFunctionsOptions): ExternalRunner {
  const execs = typeof programs === 'string' ? refusing('exec', 'programs', programs) : new ExecRunner(programs);
  const images =
    typeof containers === 'string' ? refusing('image', 'containers', containers) : new ContainerRunner(containers);
  return {
    async refusal({ exec, image }) {
      if (exec !== undefined) return execs.refusal(exec);
      if (image !== undefined) return images.refusal(image);
      return 'the function names neither an image nor a program';
    },
    async run({ exec, image, input }, signal) {
      if (exec !== undefined) return execs.run(exec, input, signal);
      if (image !== undefined) return images.run(image, input, signal);
      throw new SluiceError('InvalidInput', 'the function names neither an image nor a program');
    },
  };
}

function refusing(field: string, what: string, advice: string): Pick<ExecRunner, 'refusal' | 'run'> {
  const refusal = (name: string) =>
    `${field} ${JSON.stringify(name)} is not run: ${what} are not allowed here; ${advice}`;
  return {
    refusal: async (name) => refusal(name),
    run: async (name) => {
      throw new SluiceError('Unavailable', refusal(name));
    },
  };
}
