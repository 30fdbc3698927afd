import { styleText } from 'node:util';

/** One of the two streams of a command. */
export interface OutputStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export type Style = Parameters<typeof styleText>[0];

/** Under npm the program is not on the path, and runs as `npx sluice`. */
export function isUnderNpm(environment: NodeJS.ProcessEnv): boolean {
  return environment.npm_command !== undefined || environment.npm_lifecycle_event !== undefined;
}

/** The output streams of a command and their settings. */
export class Terminal {
  readonly out: OutputStream;
  readonly err: OutputStream;
  readonly #environment: NodeJS.ProcessEnv;

  constructor(out: OutputStream, err: OutputStream, environment: NodeJS.ProcessEnv) {
    this.out = out;
    this.err = err;
    this.#environment = environment;
  }

  /** Writes one line to stdout. */
  line(text = ''): void {
    this.out.write(`${text}\n`);
  }

  /** Writes one line to stderr, for output that programs must not read from stdout. Commands in it can be copied under npm too. */
  note(text: string): void {
    this.err.write(`${this.copyable(text)}\n`);
  }

  /** A message whose quoted commands run as they are written: under npm with npx. */
  copyable(text: string): string {
    return isUnderNpm(this.#environment) ? text.replaceAll(/(?<=["`])sluice (?=[a-z])/g, 'npx sluice ') : text;
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
  return new Terminal(process.stdout, process.stderr, process.env);
}
