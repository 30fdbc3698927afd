import { SluiceError } from '../../foundation/sluice-error.ts';
import { type ContainerOptions, ContainerRunner } from './container-runner.ts';
import { type ExecOptions, ExecRunner } from './exec-runner.ts';
import type { ExternalCall, ExternalRunner } from './external-runner.ts';

export interface ExternalFunctionsOptions {
  readonly programs: ExecOptions;
  /** Undefined refuses every image. */
  readonly containers: ContainerOptions | undefined;
}

/** Runs what a pipeline names by `exec` as a program, and what it names by `image` as a container. */
export function externalFunctions({ programs, containers }: ExternalFunctionsOptions): ExternalRunner {
  const execs = new ExecRunner(programs);
  const images = containers === undefined ? undefined : new ContainerRunner(containers);
  const noContainers = (image: string) =>
    `image ${JSON.stringify(image)} is not run: containers are switched off here; let a FunctionPolicy name a built-in function or a program in its place`;
  return {
    async refusal({ exec, image }) {
      if (exec !== undefined) return execs.refusal(exec);
      if (image !== undefined) return images === undefined ? noContainers(image) : images.refusal(image);
      return 'the function names neither an image nor a program';
    },
    async run(call: ExternalCall, signal) {
      if (call.exec !== undefined) return execs.run(call.exec, call.input, signal);
      if (call.image !== undefined && images !== undefined) return images.run(call.image, call.input, signal);
      throw new SluiceError('Unavailable', (await this.refusal(call)) ?? 'the function cannot be run here');
    },
  };
}
