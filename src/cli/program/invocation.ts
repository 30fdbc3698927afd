import type { Terminal } from '../output/terminal.ts';

/** What a command gets besides its arguments. */
export interface Invocation {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
}

/** What a command ends with: an exit code, 0 if nothing is said. */
export type Outcome = number | undefined;

export interface DataOptions {
  readonly data?: string;
}

/** Where a command works. */
export interface PlaceOptions extends DataOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly verbose?: boolean;
}

export interface ActorOptions {
  readonly as?: string;
  readonly asGroup?: readonly string[];
}
