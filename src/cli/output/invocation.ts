import type { Terminal } from './terminal.ts';

/** The context of a command besides its arguments. */
export interface Invocation {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
}

/** The result of a command: an exit code, 0 by default. */
export type CommandResult = number | undefined;

export interface DataOptions {
  readonly data?: string;
}

/** The options that select the target of a command. */
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
