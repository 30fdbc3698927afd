/** One thing that moved or went wrong. */
export interface LogEntry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn';
  /** One CamelCase word for programs: `Lifecycle`, `Condition`, `Delivered`. */
  readonly event: string;
  /** What it is about: the name of a revision, a target, a repository. */
  readonly subject: string;
  /** For people. */
  readonly message: string;
  /** For programs. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export type LogSink = (entry: LogEntry) => void;
