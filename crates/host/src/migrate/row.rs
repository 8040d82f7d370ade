//! A row on its way: the same values whatever store they come from, and the digest of a table of them.

use sha2::{Digest, Sha256};

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowValue {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

pub(super) type CarriedRow = Vec<RowValue>;

/// How a value is stored in PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Small,
    Big,
    Flag,
    Text,
    Bytes,
}

/// Counts rows and digests them in their order.
#[derive(Default)]
pub(super) struct TableDigest {
    rows: u64,
    hash: Sha256,
}

/// What two stores must agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSum {
    pub rows: u64,
    pub digest: [u8; 32],
}

impl TableDigest {
    pub(super) fn add(&mut self, row: &[RowValue]) {
        self.rows += 1;
        for cell in row {
            // With its kind and length before it, no two rows are the same bytes.
            let (kind, bytes): (u8, &[u8]) = match cell {
                RowValue::Null => (0, &[]),
                RowValue::Int(number) => (1, &number.to_be_bytes()),
                RowValue::Text(text) => (2, text.as_bytes()),
                RowValue::Bytes(bytes) => (3, bytes),
            };
            self.hash.update([kind]);
            self.hash.update((bytes.len() as u64).to_be_bytes());
            self.hash.update(bytes);
        }
    }

    pub(super) fn finish(self) -> TableSum {
        TableSum { rows: self.rows, digest: self.hash.finalize().into() }
    }
}

/// The bytes a row holds, about.
pub(super) fn size_of(row: &[RowValue]) -> usize {
    let sizes = row.iter().map(|cell| match cell {
        RowValue::Null | RowValue::Int(_) => 8,
        RowValue::Text(text) => text.len(),
        RowValue::Bytes(bytes) => bytes.len(),
    });
    sizes.sum()
}
