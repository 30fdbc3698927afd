/** Limits of one file, for what `export` writes and `import` reads. */
export const MAX_TRANSFER_CHARACTERS: number = 16 * 1024 * 1024;
export const MAX_TRANSFER_DOCUMENTS = 20_000;
