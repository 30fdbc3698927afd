import { type Kptfile, type ReadResult, readKptfile } from '../../../../kptfile-schema/index.ts';
import { LazyJson } from './lazy-json.ts';

/** A Kptfile as read, or why it cannot be. */
export class KptfileFact {
  static readonly NONE = KptfileFact.ofProblem('there is no Kptfile');
  static readonly LOST = KptfileFact.ofProblem('the Kptfile is missing from the object store');

  /** Undefined if there is a problem. */
  readonly json: LazyJson<Kptfile> | undefined;
  readonly problem: string | undefined;

  private constructor(json: LazyJson<Kptfile> | undefined, problem: string | undefined) {
    this.json = json;
    this.problem = problem;
  }

  static read(text: Buffer): KptfileFact {
    const result: ReadResult = readKptfile(text);
    return result.ok ? KptfileFact.ofJson(LazyJson.of(result.kptfile)) : KptfileFact.ofProblem(result.error.message);
  }

  static ofJson(json: LazyJson<Kptfile>): KptfileFact {
    return new KptfileFact(json, undefined);
  }

  static ofProblem(problem: string): KptfileFact {
    return new KptfileFact(undefined, problem);
  }

  get kptfile(): Kptfile | undefined {
    return this.json?.value;
  }
}
