/** In single quotes, for bash, zsh and fish. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** How the script runs sluice to look names up. */
export interface Launch {
  /** A program and its first arguments. */
  readonly words: readonly string[];
  /** True if sluice is run from its sources, so that it is called through npx. */
  readonly isCheckout: boolean;
}
