/** A request of Sluice to the API of a host. */
export interface ApiRequest {
  /** Method and path without what identifies an object, such as `GET /pulls/N/reviews`. */
  readonly kind: string;
  /** Nothing had changed (304): GitHub does not count it against the limit. */
  readonly isFree: boolean;
}

/** The secret of the webhooks. */
export const WEBHOOK_SECRET = 'the-word-of-the-webhook';
/** The user who reviews. */
export const REVIEWER = 'bob';

/** What Sluice needs to use a repository of a host. */
export interface HostAccess {
  /** Of Secret `forge`. */
  readonly secret: Readonly<Record<string, string>>;
  readonly provider: 'gitea' | 'github';
  /** Address of the API. */
  readonly api: string;
}

/** A host on loopback with one repository at a time. */
export interface BenchHost {
  readonly access: HostAccess;
  /** Creates a repository whose webhooks are sent to `webhookUrl`. Returns its address for Git. */
  createRepository(name: string, webhookUrl: string): Promise<string>;
  /** All requests of Sluice for the last repository, in their order. */
  requests(): Promise<readonly ApiRequest[]>;
  /** How many pull requests of the last repository are open. */
  openPulls(): Promise<number>;
  /** How many of them have the label. */
  labelled(): Promise<number>;
  /** A review by `REVIEWER`. Returns when its webhook was sent, by `performance.now()`. */
  review(number: number, verdict: 'approve' | 'request-changes'): Promise<number>;
  /** A squash by `REVIEWER` with the button. */
  merge(number: number): Promise<void>;
  /** The state of `sluice/ready` at the head. */
  stateOf(number: number): Promise<string | undefined>;
  /** What was wrong with the requests, by the description of the host. */
  problems(): readonly string[];
  close(): Promise<void>;
}
