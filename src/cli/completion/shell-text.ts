/** In single quotes, for bash, zsh and fish. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** The command that the script runs to look up names. */
export interface Launch {
  /** A program and its first arguments. */
  readonly words: readonly string[];
  /** True if sluice is run from its sources, so that it is called through npx. */
  readonly isCheckout: boolean;
}
