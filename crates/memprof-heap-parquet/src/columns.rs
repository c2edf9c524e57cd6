//! Columns of the row group being filled.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// Rows per row group: DuckDB's default. DuckDB reads as many groups in parallel as there are cores.
const GROUP: usize = 122_880;

/// The values of one column.
pub enum Column {
    /// Numbers.
    Numbers(Vec<i64>),
    /// Optional numbers.
    Known(Vec<Option<i64>>),
    /// Optional texts.
    Texts(Vec<Option<ByteArray>>),
}

impl Column {
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> parquet::errors::Result<()> {
        match self {
            Column::Numbers(values) => {
                writer.typed::<Int64Type>().write_batch(values, None, None)?;
                values.clear();
            }
            Column::Known(values) => {
                let known: Vec<i64> = values.iter().flatten().copied().collect();
                writer.typed::<Int64Type>().write_batch(&known, Some(&levels(values)), None)?;
                values.clear();
            }
            Column::Texts(values) => {
                let known: Vec<ByteArray> = values.iter().flatten().cloned().collect();
                writer.typed::<ByteArrayType>().write_batch(&known, Some(&levels(values)), None)?;
                values.clear();
            }
        }
        Ok(())
    }
}

/// Definition levels: 1 where a value is present.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

/// A file and its next row group.
pub struct Table<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// In the order of the schema.
    pub columns: Vec<Column>,
    rows: usize,
}

impl<W: Write + Send> Table<W> {
    /// Creates a file with this schema. The numbers of `ascending` columns are delta-encoded.
    pub fn new(
        out: W,
        schema: &str,
        columns: Vec<Column>,
        ascending: &[&str],
    ) -> io::Result<Table<W>> {
        let schema = parse_message_type(schema).map_err(io::Error::other)?;
        let mut properties = WriterProperties::builder()
            .set_created_by("memprof".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(io::Error::other)?));
        for name in ascending {
            let path = ColumnPath::from(*name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()));
        Ok(Table { writer: writer.map_err(io::Error::other)?, columns, rows: 0 })
    }

    /// Ends a row; the caller has appended a value to every column.
    pub fn row(&mut self) -> io::Result<()> {
        self.rows += 1;
        if self.rows == GROUP { self.group().map_err(io::Error::other) } else { Ok(()) }
    }

    fn group(&mut self) -> parquet::errors::Result<()> {
        self.rows = 0;
        let mut group = self.writer.next_row_group()?;
        let mut columns = self.columns.iter_mut();
        while let Some(mut writer) = group.next_column()? {
            if let Some(column) = columns.next() {
                column.write(&mut writer)?;
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the remaining rows and the file footer.
    pub fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.group().map_err(io::Error::other)?;
        }
        self.writer.close().map_err(io::Error::other)?;
        Ok(())
    }
}
