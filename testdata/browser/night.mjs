// Finds in the lanes of a bad night what went wrong, and takes the picture of it.
export async function night({page, open, findings, facts, task}) {
  await open(page, task.night.path);
}
