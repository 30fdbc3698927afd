import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { styleText } from 'node:util';
import { commandLine } from '../../foundation/text/command-line.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';

/** One of the two streams of a command. */
export interface OutputStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export type Style = Parameters<typeof styleText>[0];

/** The words that run this program again: under npm `npx sluice`, and the path of the call if PATH has no sluice. */
function programWords(environment: NodeJS.ProcessEnv, calledAs: string | undefined): readonly string[] {
  if (environment.npm_command !== undefined || environment.npm_lifecycle_event !== undefined) return ['npx', 'sluice'];
  return calledAs === undefined || isOnPath('sluice', environment) ? ['sluice'] : [calledAs];
}

function isOnPath(program: string, { PATH = '' }: NodeJS.ProcessEnv): boolean {
  return PATH.split(delimiter).some((folder) => {
    try {
      if (folder !== '') accessSync(join(folder, program), constants.X_OK);
      return folder !== '';
    } catch {
      // Absent, or not for this user.
      return false;
    }
  });
}

/** Completes the quoted commands of a message. `namespace` is that of the object which the message is about. */
export type CompleteCommands = (message: string, namespace: string | undefined) => string;

/** The output streams of a command and their settings. */
export class Terminal {
  readonly out: OutputStream;
  readonly err: OutputStream;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #calledAs: string | undefined;
  #program: readonly string[] | undefined;
  /** Makes quoted commands work on the target of the command line; set before a command runs. */
  completeCommands: CompleteCommands = (message) => message;
  /** The namespace that commands without -n mean on the target of the command line. */
  defaultNamespace = DEFAULT_NAMESPACE;

  /** `calledAs` is the path by which the program was called. */
  constructor(out: OutputStream, err: OutputStream, environment: NodeJS.ProcessEnv, calledAs?: string) {
    this.out = out;
    this.err = err;
    this.#environment = environment;
    this.#calledAs = calledAs;
  }

  /** The words that a user types to run this program again. */
  get program(): readonly string[] {
    this.#program ??= programWords(this.#environment, this.#calledAs);
    return this.#program;
  }

  /** Writes one line for people to stdout. It is made `copyable`, so that other output is written to `out`. */
  line(text = '', namespace?: string): void {
    this.out.write(`${this.copyable(text, namespace)}\n`);
  }

  /** Writes one line to stderr, for output that programs must not read from stdout. It is made `copyable`. */
  note(text: string, namespace?: string): void {
    this.err.write(`${this.copyable(text, namespace)}\n`);
  }

  /**
   * A message whose quoted commands run as they are written: however this program was called, and on the target of the command line.
   * `namespace` is that of the object which the message is about; by default that of the command line. What it returns is complete: it is
   * written to `out`, as cells and documents are.
   */
  copyable(text: string, namespace?: string): string {
    const completed = this.completeCommands(text, namespace);
    const program = commandLine(this.program);
    return program === 'sluice' ? completed : completed.replaceAll(/(?<=["`])sluice (?=[a-z])/g, () => `${program} `);
  }

  /** Colours a text where a person reads it; `text` must be printable already. */
  style(style: Style, text: string, stream: OutputStream = this.out): string {
    return this.#hasColour(stream) ? styleText(style, text, { validateStream: false }) : text;
  }

  /** NO_COLOR wins over FORCE_COLOR (https://no-color.org); otherwise a terminal that is not dumb has colour. */
  #hasColour(stream: OutputStream): boolean {
    const { NO_COLOR, FORCE_COLOR, TERM } = this.#environment;
    if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
    if (FORCE_COLOR !== undefined) return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
    return stream.isTTY === true && TERM !== 'dumb';
  }
}

/** The terminal of this process. */
export function processTerminal(): Terminal {
  return new Terminal(process.stdout, process.stderr, process.env, process.argv[1]);
}
