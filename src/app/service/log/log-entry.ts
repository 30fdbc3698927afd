/** A change or a failure. */
export interface LogEntry {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn';
  /** One CamelCase word for programs: `Lifecycle`, `Condition`, `Delivered`. */
  readonly event: string;
  /** The subject: the name of a revision, a target or a repository. */
  readonly subject: string;
  /** Human-readable message. */
  readonly message: string;
  /** For programs. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export type LogSink = (entry: LogEntry) => void;
