/** A fix in the editor's buffers and files: put in, seen there, taken back. Texts are looked at, answers are not believed. */

import * as fs from "node:fs/promises";
import * as vscode from "vscode";
import type { ChangedFile, FileTexts } from "./messages";
import { apply, hunksOf, linesOf, locate, reversed, type Hunk } from "./patch";
import type { Session } from "./sessions";

export interface FixFile extends ChangedFile, FileTexts {}

/** The files of a session's newest fix. */
export async function filesOf(session: Session): Promise<FixFile[]> {
  const { proposal } = session;
  if (proposal === undefined) {
    throw new Error("There is no fix yet: run Autodebug: Investigate This Exception.");
  }
  if (session.texts?.id !== proposal.id) {
    session.texts = await session.request<NonNullable<Session["texts"]>>("texts");
  }
  const texts = new Map(session.texts.files.map((one) => [one.path, one]));
  return proposal.files.map((file) => ({ oldText: null, newText: null, ...texts.get(file.path), ...file }));
}

/** What a file is to hold with the fix; null if the fix does not fit *text* (null: there is no file). */
export function target(file: FixFile, text: string | null): string | null {
  if (file.oldText === null || text === null) {
    return file.oldText === text ? file.newText : null;
  }
  return apply(text, hunks(file));
}

/** An edit that puts a fix into the buffers. */
export async function editOf(session: Session): Promise<vscode.WorkspaceEdit> {
  const edit = new vscode.WorkspaceEdit();
  const { title, proved } = session.proposal ?? { title: "", proved: false };
  const about = { label: title, needsConfirmation: !proved };
  for (const file of await filesOf(session)) {
    if (file.newText === null) {
      throw new Error(`${file.path} is no text: apply the fix with /apply in the debug console.`);
    }
    if (file.oldText === null) {
      edit.createFile(vscode.Uri.file(file.path), { contents: Buffer.from(file.newText) }, about);
    } else {
      await replace(edit, file, hunks(file), about);
    }
  }
  return edit;
}

/** Put a fix into the buffers and save them. */
export async function put(session: Session): Promise<void> {
  await done(await editOf(session), await filesOf(session), false);
}

/** Take a fix out of the buffers again and save them. */
export async function takeBack(session: Session): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  const files = await filesOf(session);
  for (const file of files) {
    if (file.oldText === null) {
      edit.deleteFile(vscode.Uri.file(file.path), { ignoreIfNotExists: true });
    } else {
      await replace(edit, file, reversed(hunks(file)));
    }
  }
  await done(edit, files, true);
}

/** Whether all files on the disk hold a fix (or, *back*, are without it again). */
export async function isSaved(files: readonly FixFile[], back = false): Promise<boolean> {
  const holds = await Promise.all(
    files.map(async (file) => {
      const text = await fs.readFile(file.path, "utf8").catch(() => null);
      if (file.oldText === null || text === null) {
        return back ? text === null : text !== null;
      }
      return locate(linesOf(text), back ? hunks(file) : reversed(hunks(file))) !== null;
    }),
  );
  return holds.every(Boolean);
}

/** The buffer's text if the file is open, else the file's; null if there is none. */
export async function textOf(file: string): Promise<string | null> {
  const open = buffer(file);
  return open !== undefined ? open.getText() : fs.readFile(file, "utf8").catch(() => null);
}

export function isDirty(file: ChangedFile): boolean {
  return buffer(file.path)?.isDirty === true;
}

function buffer(file: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((one) => one.uri.scheme === "file" && one.uri.fsPath === file);
}

function hunks(file: FixFile): Hunk[] {
  return hunksOf(file.oldText ?? "", file.newText ?? "", file.ranges);
}

async function replace(
  edit: vscode.WorkspaceEdit,
  file: FixFile,
  changes: readonly Hunk[],
  about?: vscode.WorkspaceEditEntryMetadata,
): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(file.path));
  const found = locate(linesOf(document.getText()), changes);
  if (found === null) {
    throw new Error(`${vscode.workspace.asRelativePath(file.path)} has changed where the fix changes it: investigate again.`);
  }
  const end = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
  for (const { line, removed, added } of found) {
    const range = document.validateRange(new vscode.Range(line, 0, line + removed, 0));
    edit.replace(document.uri, range, added.map((text) => text + end).join(""), about);
  }
}

async function done(edit: vscode.WorkspaceEdit, files: readonly FixFile[], back: boolean): Promise<void> {
  await vscode.workspace.applyEdit(edit);
  for (const file of files) {
    if (isDirty(file)) {
      await buffer(file.path)?.save();
    }
  }
  if (!(await isSaved(files, back))) {
    throw new Error("The editor has not made the change in all files: look at them, and use the debug console (/apply, /undo).");
  }
}
